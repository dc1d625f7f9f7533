import { Argument, type Command } from "commander";
import type { AddCommand } from "#cli/session/add-command.ts";
import { usageFailure } from "#cli/session/failure.ts";

interface Verb {
  readonly what: string;
  readonly next: (owner: Owner) => string;
}

interface Owner {
  /** The argument of a `rollout` command, such as `shop -n payments` or `sync/shop`. */
  readonly group: string;
  /** The argument of a command for objects of any kind, such as `syncgroup/shop -n payments`. */
  readonly object: string;
}

/** Verbs of `kubectl rollout` that Starling does not have under `rollout`. */
const verbs: Readonly<Record<string, Verb>> = {
  history: {
    what: "`rollout history` is called `rollout list`",
    next: ({ group }) => `starling rollout list ${group}`,
  },
  pause: {
    what: "`rollout pause` is called `suspend`",
    next: ({ object }) => `starling suspend ${object}`,
  },
  resume: {
    what: "`rollout resume` is called `resume`",
    next: ({ object }) => `starling resume ${object}`,
  },
  restart: {
    what: "`rollout restart` restarts Pods in kubectl; Starling takes a new snapshot with `rollout refresh`",
    next: ({ group }) => `starling rollout refresh ${group}`,
  },
  undo: {
    what: "`rollout undo` is called `rollout rollback`; it also holds the group, until git has a fix",
    next: ({ group }) => `starling rollout rollback ${group} --dry-run --reason "why"`,
  },
};

export const kubectlRolloutVerbs: readonly string[] = Object.keys(verbs);

const ownerArgument = /^(?:(syncgroup|sg|sync)\/)?([a-z0-9][-a-z0-9.]*)$/i;

/** Adds hidden commands that answer the verbs of `kubectl rollout` with the nearest command of Starling. */
export function addKubectlVerbs(rollout: Command, add: AddCommand): void {
  for (const [name, { what, next }] of Object.entries(verbs)) {
    add(rollout, name, (session, args) => {
      const { group, object } = ownerOf(args);
      const where = session.where();
      throw usageFailure(what, next({ group: `${group}${where}`, object: `${object}${where}` }));
    })
      .addArgument(new Argument("[group...]"))
      .allowUnknownOption();
  }
}

/** The group or Sync that was named; a placeholder for a flag or a kind of Kubernetes, such as `deployment/web`. */
function ownerOf(args: readonly string[]): Owner {
  const [first = "", ...others] = args.filter((arg) => !arg.startsWith("-"));
  const [, kind, name] = (others.length === 0 && ownerArgument.exec(first)) || [];
  if (name === undefined) return { group: "GROUP", object: "syncgroup/GROUP" };
  if (kind?.toLowerCase() === "sync") return { group: `sync/${name}`, object: `sync/${name}` };
  return { group: name, object: `syncgroup/${name}` };
}
