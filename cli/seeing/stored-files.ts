/** Reads stored renderings and artifacts by links of the API, which are valid for some minutes. */
import { CliFailure } from "#cli/session/failure.ts";
import { pathOfObject } from "#cli/session/kind-names.ts";
import { isNotFound } from "#cli/session/rollout-owner.ts";
import type { Session } from "#cli/session/session.ts";
import { HttpTransfer } from "#shared/adapters/net/http-transfer.ts";
import { unpackArtifact } from "#shared/adapters/render/artifact-archive.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import type { TreeFile } from "#shared/ports.ts";

/** A rendering, and a Sync that refers to it. */
export interface StoredRendering {
  readonly digest: string;
  readonly cluster: string;
  readonly sync: string;
}

/**
 * URLs by digest, for at most a hundred Syncs.
 * @throws CliFailure when a rollout has replaced the rendering on all of these Syncs since they were read.
 */
export async function renderingLinks(
  { api }: Pick<Session, "api">,
  { kind, namespace, name }: Owner,
  renderings: readonly StoredRendering[],
): Promise<Readonly<Record<string, string>>> {
  const path = `${pathOfObject({ kind, name }, namespace)}/contents`;
  const call = { method: "POST", path, body: { renderings } } as const;
  const answer = await api
    .call<{ readonly renderings: Readonly<Record<string, string>> }>(call)
    .catch((error: unknown) => {
      throw isNotFound(error) ? lost(`a rendering of ${kind} ${namespace}/${name}`, movedOn(error)) : error;
    });
  return answer.renderings;
}

/** The files of an artifact that a Source has, or had in the last 30 days. @throws CliFailure when it cannot be read. */
export async function storedArtifact(
  { api }: Pick<Session, "api">,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  digest: string,
): Promise<readonly TreeFile[]> {
  const path = `${pathOfObject({ kind: "Source", name }, namespace)}/contents`;
  const body = { artifacts: [digest] };
  const answer = await api.call<{ readonly artifacts: Readonly<Record<string, string>> }>({
    method: "POST",
    path,
    body,
  });
  const { [digest]: url } = answer.artifacts;
  if (url === undefined) throw lost(`artifact ${digest}`, "the API has no link to it");
  return unpackArtifact(await new HttpTransfer().download(url), digest);
}

/** The reason of a rendering that was replaced meanwhile. It says nothing about the change. */
function movedOn({ message }: Error): string {
  return `the fleet changed while it was read: ${message.replace(/; read the fleet again$/, "")}`;
}

export function lost(what: string, why: string): CliFailure {
  return new CliFailure(`${what} cannot be read: ${why}`, { exit: "unknown", next: "try the same command again" });
}
