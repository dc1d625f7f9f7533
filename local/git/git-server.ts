import { createHash, timingSafeEqual } from "node:crypto";
import { access, mkdir } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { LocalFailure } from "#local/base/local-failure.ts";
import { serveOnLoopback } from "#local/base/loopback-server.ts";
import { takeTurns } from "#local/base/take-turns.ts";
import type { TlsCertificate } from "#local/base/tls-certificate.ts";
import { type Cut, refuse } from "#local/git/cut-answer.ts";
import { runGit } from "#local/git/git-command.ts";
import { serveHttpBackend } from "#local/git/http-backend.ts";
import {
  type CommitOptions,
  commitInto,
  copyRepository,
  type FileChanges,
  initRepository,
  type RefUpdate,
  refsOf,
  refUpdates,
  repositoryFolder,
} from "#local/git/repository.ts";
import { defined } from "#shared/base/defined.ts";

export interface GitServerOptions {
  /** The folder of the bare repositories. */
  readonly root: string;
  readonly port?: number;
  /** Serves https with this certificate. The default is http. */
  readonly tls?: TlsCertificate;
  /** The credentials of every request, as HTTP Basic. By default the server is open. */
  readonly credentials?: { readonly username: string; readonly password: string };
  /** Called after a push and after a commit of this server, with the changed refs. */
  readonly onPush?: (repository: string, updates: readonly RefUpdate[]) => void | Promise<void>;
  /** Called for each request. The result is the way in which the answer fails, if it fails. */
  readonly disturb?: (request: { readonly method: string; readonly path: string }) => Cut | undefined;
}

export interface FileCommit extends CommitOptions {
  readonly message: string;
}

export interface GitServer {
  /** The clone URL of a repository, for example `http://127.0.0.1:8080/platform/fleet.git`. */
  url(repository: string): string;
  /**
   * Creates a repository. With files it also makes a first commit on `main`. @returns the id of that commit, if any.
   */
  createRepository(repository: string, files?: FileChanges): Promise<string | undefined>;
  /** Copies a repository of this machine with all its branches and tags. @returns its clone URL. */
  importRepository(repository: string, path: string): Promise<string>;
  /** Commits to a branch (by default `main`), as a push would. @returns the commit id. */
  commitFiles(repository: string, files: FileChanges, commit: FileCommit): Promise<string>;
  /** Deletes a branch or tag, for example `refs/heads/old`, as a push would. */
  deleteRef(repository: string, ref: string): Promise<void>;
  stop(): Promise<void>;
}

/**
 * A git server on 127.0.0.1 for bare repositories over smart HTTP, protocols 0 to 2, through git's own `http-backend`.
 * @throws Error that names what to install when git or its http-backend is missing.
 */
export async function startGitServer(options: GitServerOptions): Promise<GitServer> {
  const { root, credentials, onPush, tls } = options;
  await requireHttpBackend();
  await mkdir(root, { recursive: true });
  const inTurn = takeTurns();

  /** One writer at a time per repository, so that each push reports exactly the refs that it moved. */
  async function write<Result>(repository: string, action: () => Promise<Result>): Promise<Result> {
    const folder = repositoryFolder(root, repository);
    const { result, updates } = await inTurn(repository, async () => {
      const before = await refsOf(folder);
      const result = await action();
      return { result, updates: refUpdates(before, await refsOf(folder)) };
    });
    if (updates.length > 0) await onPush?.(repository, updates);
    return result;
  }

  async function commitFiles(repository: string, files: FileChanges, commit: FileCommit): Promise<string> {
    const folder = repositoryFolder(root, repository);
    return write(repository, () => commitInto({ ...commit, folder, files }));
  }

  async function serve(request: IncomingMessage, response: ServerResponse, cut: Cut | undefined): Promise<void> {
    if (cut?.when === "before") return refuse(response, cut);
    if (credentials !== undefined && !isAuthorised(request.headers.authorization, credentials)) {
      response.writeHead(401, { "www-authenticate": 'Basic realm="git"' }).end("Unauthorized\n");
      return;
    }
    const pushed = /^\/(.+)\.git\/git-receive-pack$/.exec(request.url ?? "")?.[1];
    const exchange = { root, request, response, breaksOff: cut !== undefined };
    if (request.method !== "POST" || pushed === undefined) return serveHttpBackend(exchange);
    await write(decodeURIComponent(pushed), () => serveHttpBackend(exchange));
  }

  function answer(request: IncomingMessage, response: ServerResponse): void {
    const cut = options.disturb?.({ method: request.method ?? "GET", path: request.url ?? "/" });
    serve(request, response, cut).catch((error: unknown) => {
      if (!response.headersSent) response.writeHead(500);
      response.end(`${error instanceof Error ? error.message : error}\n`);
    });
  }

  const { origin, stop } = await serveOnLoopback(answer, {
    ...defined({ tls, port: options.port }),
  });

  return {
    url(repository) {
      repositoryFolder(root, repository);
      return `${origin}/${repository}.git`;
    },
    async createRepository(repository, files) {
      await initRepository(repositoryFolder(root, repository));
      return files === undefined ? undefined : commitFiles(repository, files, { message: "Initial commit" });
    },
    async importRepository(repository, path) {
      await copyRepository(path, repositoryFolder(root, repository));
      return `${origin}/${repository}.git`;
    },
    commitFiles,
    async deleteRef(repository, ref) {
      await write(repository, () => runGit(["-C", repositoryFolder(root, repository), "update-ref", "-d", ref]));
    },
    stop,
  };
}

async function requireHttpBackend(): Promise<void> {
  let folder: string;
  try {
    folder = (await runGit(["--exec-path"])).trim();
  } catch (cause) {
    const next = "git --version   (once git 2.28 or later is installed)";
    throw new LocalFailure("git is not on the PATH; install git 2.28 or later", { exit: "unknown", next, cause });
  }
  try {
    await access(join(folder, "git-http-backend"));
  } catch (cause) {
    throw new LocalFailure(`${folder} has no git-http-backend; install the whole of git (on Alpine: git-daemon)`, {
      exit: "unknown",
      next: "git http-backend   (known once it is installed)",
      cause,
    });
  }
}

function isAuthorised(header: string | undefined, { username, password }: { username: string; password: string }) {
  const [scheme = "", token = ""] = (header ?? "").split(" ");
  const given = createHash("sha256").update(Buffer.from(token, "base64")).digest();
  const desired = createHash("sha256").update(`${username}:${password}`).digest();
  return timingSafeEqual(given, desired) && scheme.toLowerCase() === "basic";
}
