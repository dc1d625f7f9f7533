import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type GitServer, type GitServerOptions, startGitServer } from "#local/git/git-server.ts";

export interface OwnGitServer extends GitServer {
  /** The folder of its repositories. */
  readonly root: string;
}

/** A git server with a folder of its own, which is removed when the server stops. */
export async function startOwnGitServer(options: Omit<GitServerOptions, "root"> = {}): Promise<OwnGitServer> {
  const root = await mkdtemp(join(tmpdir(), "starling-git-"));
  const server = await startGitServer({ ...options, root });
  return {
    ...server,
    root,
    async stop() {
      await server.stop();
      await rm(root, { recursive: true, force: true });
    },
  };
}
