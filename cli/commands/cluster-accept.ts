import { requireReadable } from "#cli/format/require-readable.ts";
import { ApiFailure } from "#cli/session/api-client.ts";
import { confirmConsequences } from "#cli/session/confirm.ts";
import { CliFailure, type ExitReason } from "#cli/session/failure.ts";
import { pathOfObject } from "#cli/session/kind-names.ts";
import type { Session } from "#cli/session/session.ts";
import { defined } from "#shared/base/defined.ts";
import { quoted } from "#shared/base/shell-word.ts";
import type { ClusterObject } from "#shared/fleet/api/objects.ts";

export interface AcceptOptions {
  /** UID of the cluster to accept. Absent: the UID that was seen last. */
  readonly uid?: string;
}

/** Accepts the cluster that answers now under this name. Its Syncs are applied again from the start. */
export async function clusterAccept(session: Session, name: string, options: AcceptOptions): Promise<ExitReason> {
  session.announce();
  const path = pathOfObject({ kind: "Cluster", name }, "");
  const uid = options.uid ?? (await seenUid(session, path, name));
  const { reason } = session.options;
  const body = { uid, ...defined({ reason }) };
  const outcome = await accepted(session, { path, name, body });
  const done =
    outcome === "unchanged" ? "unchanged: it is this cluster already" : "accepted: its Syncs are applied again";
  session.io.out(`cluster/${name} ${done} (kube-system uid ${uid})\n`);
  if (outcome !== "unchanged" && reason === undefined) {
    session.note("no reason is recorded; --reason TEXT records one");
  }
  return "done";
}

async function seenUid(session: Session, path: string, name: string): Promise<string> {
  const { mismatch } = requireReadable(await session.api.call<ClusterObject>({ method: "GET", path })).status;
  if (mismatch !== undefined) return mismatch;
  throw new CliFailure(`there is nothing to accept: no other cluster has answered at the address of ${name}`, {
    exit: "no",
    next: `starling describe cluster/${name}`,
  });
}

async function accepted(
  session: Session,
  { path, name, body }: { path: string; name: string; body: { readonly uid: string; readonly reason?: string } },
): Promise<string> {
  const request = { method: "POST", path: `${path}/accept` } as const;
  try {
    return (await session.api.call<{ outcome: string }>({ ...request, body })).outcome;
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    if (error.code === "IdentityChanged") {
      throw new CliFailure(error.message, { exit: "no", next: `starling describe cluster/${name}` });
    }
    if (error.code !== "ConfirmationRequired") throw error;
    await confirmConsequences(session, error, `starling cluster accept ${name} --uid ${quoted(body.uid)} --yes`);
    return (await session.api.call<{ outcome: string }>({ ...request, body: { ...body, confirm: true } })).outcome;
  }
}
