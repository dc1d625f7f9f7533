/** Explains a refusal of the gateway, which itself gives no reason. */
import { pathChoices } from "#shared/fleet/api/api-routes.ts";

/**
 * `execute-api:Invoke is missing for GET /v1/clusters; the stack's ViewerPolicy allows it`, for the refused user and
 * for the person who grants the permission.
 */
export function missingRight(method: string, path: string): string {
  const [plain = path] = path.split("?");
  return `execute-api:Invoke is missing for ${method} ${plain}; the stack's ${policyOf(method, plain)} allows it`;
}

/** The actions of operators, by the last segment of their path. */
const operating = new Set<string>([...pathChoices.verb, "accept", "recover", "check"]);

/** The weakest policy that allows the request. */
function policyOf(method: string, path: string): string {
  if (method === "GET") return path === "/v1/audit" ? "AdministratorPolicy" : "ViewerPolicy";
  if (path.endsWith("/contents")) return "ReaderPolicy";
  if (path.endsWith("/approve")) return "ApproverPolicy";
  return path.startsWith("/v1/freezes/") || operating.has(path.slice(path.lastIndexOf("/") + 1))
    ? "OperatorPolicy"
    : "AdministratorPolicy";
}
