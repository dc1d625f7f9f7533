import { ApiFailure } from "#cli/session/api-client.ts";
import { confirmConsequences } from "#cli/session/confirm.ts";
import { CliFailure, type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { hasNamespace, type NamedObject, parseNamed, pathOfObject, shortName } from "#cli/session/kind-names.ts";
import type { Session } from "#cli/session/session.ts";
import type { AnyObject } from "#shared/fleet/api/objects.ts";
import { objectState } from "#shared/words/object-state.ts";

const pollMs = 1000;

export interface DeleteOptions {
  readonly cascade: "delete" | "orphan";
  readonly wait?: boolean;
}

export async function remove(session: Session, args: readonly string[], options: DeleteOptions): Promise<ExitReason> {
  session.announce();
  for (const object of parseNamed(args, "delete")) {
    if (object.kind === "Rollout")
      throw usageFailure("a Rollout cannot be deleted: it is a record", "starling delete syncgroup/NAME");
    const path = pathOfObject(object, hasNamespace(object.kind) ? session.namespace() : "");
    const query = { cascade: options.cascade, reason: session.options.reason };
    const outcome = await confirmed(session, { object, path, query });
    session.io.out(`${shortName(object)} ${outcome}\n`);
    if (options.wait === true && outcome === "deleting") await waitGone(session, { object, path });
    else if (outcome === "deleting")
      session.note(`  next: starling describe ${shortName(object)}${session.where()}   (until it is deleted)`);
  }
  return "done";
}

async function confirmed(
  session: Session,
  request: { object: NamedObject; path: string; query: Readonly<Record<string, string | undefined>> },
): Promise<string> {
  const { path, query, object } = request;
  try {
    return (await session.api.call<{ outcome: string }>({ method: "DELETE", path, query })).outcome;
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    if (error.code === "InUse" && object.kind === "Cluster") {
      throw new CliFailure(error.message, {
        exit: "no",
        next: `starling delete ${shortName(object)} --cascade=orphan`,
      });
    }
    if (error.code !== "ConfirmationRequired") throw error;
    await confirmConsequences(
      session,
      error,
      `starling delete ${shortName(object)}${hasNamespace(object.kind) ? session.where() : ""} --cascade=${query.cascade} --yes`,
    );
    const sure = { method: "DELETE", path, query: { ...query, confirm: "true" } } as const;
    return (await session.api.call<{ outcome: string }>(sure)).outcome;
  }
}

/** Waits until the object is deleted, and prints what the deletion waits for. */
async function waitGone(session: Session, { object, path }: { object: NamedObject; path: string }): Promise<void> {
  let said = "";
  for (;;) {
    try {
      const { word, remark } = objectState(await session.api.call<AnyObject>({ method: "GET", path }));
      if (remark !== said) session.note(`${shortName(object)} ${word} ${remark}`);
      said = remark;
    } catch (error) {
      if (!(error instanceof ApiFailure) || error.code !== "NotFound") throw error;
      session.io.out(`${shortName(object)} deleted\n`);
      return;
    }
    await session.pause(pollMs);
  }
}
