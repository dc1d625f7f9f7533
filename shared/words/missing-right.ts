/** Of what the gateway refuses: it says no more than that. */

/** `execute-api:Invoke is missing for GET /v1/clusters; the stack's ViewerPolicy has it`: for who may not, and whoever grants it. */
export function missingRight(method: string, path: string): string {
  const [plain = path] = path.split("?");
  return `execute-api:Invoke is missing for ${method} ${plain}; the stack's ${policyOf(method, plain)} has it`;
}

/** What operators may, by the last part of its path. */
const operating = /\/(?:suspend|resume|reconcile|refresh|accept|recover|check)$/;

/** The least that has it. */
function policyOf(method: string, path: string): string {
  if (method === "GET") return path === "/v1/audit" ? "AdministratorPolicy" : "ViewerPolicy";
  if (path.endsWith("/contents")) return "ReaderPolicy";
  return path.startsWith("/v1/freezes/") || operating.test(path) ? "OperatorPolicy" : "AdministratorPolicy";
}
