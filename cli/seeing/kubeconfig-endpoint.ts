/** The API server of a context of the caller's kubeconfig, with the credentials of the context's user. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import * as z from "zod";
import { CliFailure } from "#cli/session/failure.ts";
import type { CliIo } from "#cli/session/io.ts";
import type { KubeEndpoint } from "#shared/adapters/kube/kube-transport.ts";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { defined } from "#shared/base/defined.ts";
import { quoted } from "#shared/base/shell-word.ts";

const run = promisify(execFile);

export interface KubeconfigChoice {
  /** Absent: KUBECONFIG, or `~/.kube/config`, as in kubectl. */
  readonly kubeconfig?: string;
  /** Absent: the current one. */
  readonly kubeContext?: string;
}

const execSchema = z.object({
  apiVersion: z.string(),
  command: z.string(),
  args: z.array(z.string()).nullish(),
  env: z.array(z.object({ name: z.string(), value: z.string() })).nullish(),
});

const viewSchema = z.object({
  clusters: z.array(
    z.object({
      cluster: z.object({
        server: z.string(),
        "certificate-authority-data": z.string().optional(),
        "insecure-skip-tls-verify": z.boolean().optional(),
        "tls-server-name": z.string().optional(),
        "proxy-url": z.string().optional(),
      }),
    }),
  ),
  users: z.array(
    z.object({
      user: z.object({
        token: z.string().optional(),
        tokenFile: z.string().optional(),
        "client-certificate-data": z.string().optional(),
        "client-key-data": z.string().optional(),
        exec: execSchema.optional(),
      }),
    }),
  ),
});
type User = z.infer<typeof viewSchema>["users"][number]["user"];

/**
 * Asks kubectl for the context, so that files are found and merged in kubectl's way.
 * @throws CliFailure that names the context and the problem.
 */
export async function kubeconfigEndpoint(io: CliIo, choice: KubeconfigChoice): Promise<KubeEndpoint> {
  const { clusters, users } = await viewOf(io, choice);
  const cluster = clusters[0]?.cluster;
  if (cluster === undefined) throw wrong("has no cluster", choice);
  const { server, "insecure-skip-tls-verify": isInsecure, "proxy-url": proxy } = cluster;
  if (isInsecure === true)
    throw wrong("has insecure-skip-tls-verify: a token is never sent to an unverified server", choice);
  if (!server.startsWith("https://")) throw wrong(`has server ${server}; only https is supported`, choice);
  if (proxy !== undefined) throw wrong(`needs the proxy ${proxy}; proxies are not supported`, choice);
  return {
    server,
    ...defined({ caData: cluster["certificate-authority-data"], tlsServerName: cluster["tls-server-name"] }),
    credentials: credentialsOf(users[0]?.user ?? {}, { io, choice }),
  };
}

interface Asking {
  readonly io: CliIo;
  readonly choice: KubeconfigChoice;
}

async function viewOf(io: CliIo, choice: KubeconfigChoice): Promise<z.infer<typeof viewSchema>> {
  const kubectl = await locateKubectl(io.env.PATH ?? "");
  const flags = [
    ...(choice.kubeconfig === undefined ? [] : ["--kubeconfig", choice.kubeconfig]),
    ...(choice.kubeContext === undefined ? [] : ["--context", choice.kubeContext]),
  ];
  const args = ["config", "view", "--raw", "--minify", "--flatten", "-o", "json", ...flags];
  const view = await run(kubectl, args, { cwd: io.cwd, env: { ...io.env } }).catch((error: unknown) => {
    throw wrong(`cannot be read: ${saidBy(error)}`, choice);
  });
  const parsed = viewSchema.safeParse(JSON.parse(view.stdout));
  if (parsed.success) return parsed.data;
  throw wrong("has no cluster and user", choice);
}

function credentialsOf(user: User, { io, choice }: Asking): KubeEndpoint["credentials"] {
  const { token, tokenFile, exec, "client-certificate-data": certificate, "client-key-data": key } = user;
  if (exec !== undefined) return { token: () => askProgram(exec, { io, choice }) };
  if (tokenFile !== undefined) return { token: async () => (await readFile(tokenFile, "utf8")).trim() };
  if (token !== undefined) return { token: async () => token };
  if (certificate !== undefined && key !== undefined)
    return { clientCertificate: { certData: certificate, keyData: key } };
  throw wrong("has a user without a token, a client certificate or a credential plugin", choice);
}

/** Runs a credential plugin, such as `aws eks get-token`, in client-go's way. */
async function askProgram(exec: z.infer<typeof execSchema>, { io, choice }: Asking): Promise<string> {
  const { apiVersion, command, args, env } = exec;
  const asked = JSON.stringify({ apiVersion, kind: "ExecCredential", spec: { interactive: false } });
  const own = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value]));
  const answer = await run(command, args ?? [], {
    cwd: io.cwd,
    env: { ...io.env, ...own, KUBERNETES_EXEC_INFO: asked },
  }).catch((error: unknown) => {
    throw wrong(`uses the credential plugin ${command}, which failed: ${saidBy(error)}`, choice);
  });
  const given = z.object({ status: z.object({ token: z.string() }) }).safeParse(parsed(answer.stdout));
  if (given.success) return given.data.status.token;
  throw wrong(`uses the credential plugin ${command}, which printed no token`, choice);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The error output of a program. Its standard output is never shown, because it may hold a credential. */
function saidBy(error: unknown): string {
  const { stderr, code } = error as { readonly stderr?: string; readonly code?: string | number };
  const said = (stderr ?? "").trim().slice(0, 500);
  return said === "" ? `exit code ${code ?? "unknown"}` : said;
}

function wrong(what: string, { kubeconfig, kubeContext }: KubeconfigChoice): CliFailure {
  const flags = [
    ...(kubeconfig === undefined ? [] : [` --kubeconfig ${quoted(kubeconfig)}`]),
    ...(kubeContext === undefined ? [] : [` --context ${quoted(kubeContext)}`]),
  ].join("");
  const name = kubeContext === undefined ? "the current context of the kubeconfig" : `context ${kubeContext}`;
  return new CliFailure(`${name} ${what}`, { exit: "wrongInput", next: `kubectl config view --minify${flags}` });
}
