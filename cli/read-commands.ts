/** The commands that only read. */
import { Argument, type Command } from "commander";
import type { DescribeOptions } from "#cli/commands/describe.ts";
import type { EventsOptions } from "#cli/commands/events.ts";
import type { GetOptions } from "#cli/commands/get.ts";
import type { HistoryOptions } from "#cli/commands/history.ts";
import type { LogsOptions } from "#cli/commands/logs.ts";
import type { TreeOptions } from "#cli/commands/tree.ts";
import type { WaitOptions } from "#cli/commands/wait-for.ts";
import { type AddCommand, wholeNumber } from "#cli/session/add-command.ts";

export const kindArgument = "KIND/NAME, or KIND NAME... (source, cluster, syncgroup, sync, rollout)";

export function readCommands(program: Command, add: AddCommand): void {
  add(program, "get", async (session, args, options: GetOptions) =>
    (await import("#cli/commands/get.ts")).get(session, args, options),
  )
    .description("List objects, worst first.")
    .addArgument(
      new Argument(
        "<kind>",
        "source, cluster, syncgroup, sync or rollout, separated by commas; or versions, freezes, or zones",
      ),
    )
    .addArgument(new Argument("[names...]", "list only these objects"))
    .option("-l, --selector <labels>", "only objects with these labels: env=prod,ring in (a,b),!legacy")
    .option("--state <word>", "only objects in this state: Ready, Failed, Halted, ...")
    .option("--cluster <name>", "only Syncs on this cluster")
    .option("--group <name>", "only Syncs of this SyncGroup")
    .option("--limit <n>", "list at most this many objects", wholeNumber, 500)
    .option("--continue <token>", "continue a list after this token of its last page")
    .option("-w, --watch", "keep running, and print each object that changes");

  add(program, "describe", async (session, args, options: DescribeOptions) =>
    (await import("#cli/commands/describe.ts")).describe(session, args, options),
  )
    .description("Show all details of an object: its desired and actual state, its problems, and what to do next.")
    .addArgument(new Argument("<object...>", kindArgument))
    .option("--cluster <name>", "of a group: its Sync, or the inputs of its templates, on this cluster")
    .option("--objects <n>", "of a Sync: show at most this many objects, the worst first", wholeNumber, 20)
    .option("--events <n>", "show at most this many events, the newest", wholeNumber, 10);

  add(program, "tree", async (session, args, options: TreeOptions) =>
    (await import("#cli/commands/tree.ts")).tree(session, args, options),
  )
    .description("Show the Syncs of a cluster or a group, or the objects of a Sync, as a tree. The worst come first.")
    .addArgument(new Argument("<object...>", "cluster/NAME, syncgroup/NAME or sync/NAME"))
    .option("--cluster <name>", "of a group: only on this cluster")
    .option("--objects", "also show the objects of each Sync of a cluster or group")
    .option("--all", "also show what is ready, and every object");

  add(program, "history", async (session, args, options: HistoryOptions) =>
    (await import("#cli/commands/history.ts")).history(session, args, options),
  )
    .description(
      "List the rollouts of a group or Sync, or the revisions of a Source, with commits. The newest come first.",
    )
    .addArgument(new Argument("<object...>", "GROUP, sync/NAME, sync/GROUP.TEMPLATE or source/NAME"))
    .option("--cluster <name>", "also show the result of each on this cluster")
    .option("--limit <n>", "list at most this many", wholeNumber, 10);

  add(program, "events", async (session, args, options: EventsOptions) =>
    (await import("#cli/commands/events.ts")).events(session, args, options),
  )
    .description(
      "List the events of a SyncGroup or Sync, or of all groups of -n or -A, in the last 30 days. The oldest come first.",
    )
    .addArgument(new Argument("[object...]", `GROUP or ${kindArgument} (default: all groups)`))
    .option("--cluster <name>", "for a Sync of a group: on this cluster")
    .option("--limit <n>", "list at most this many events, the newest", wholeNumber, 50)
    .option("-w, --watch", "keep running, and print new events");

  add(program, "wait", async (session, args, options: WaitOptions) =>
    (await import("#cli/commands/wait-for.ts")).waitFor(session, args, options),
  )
    .description(
      "Wait until objects meet the goal of --for, for 30s or the time of --timeout. Exit 4 when the time is over.",
    )
    .addArgument(new Argument("<object...>", kindArgument))
    .requiredOption("--for <goal>", "condition=TYPE[=STATUS], state=WORD, revision=REVISION, create or delete")
    .option("--cluster <name>", "for a Sync of a group: on this cluster");

  add(program, "logs", async (session, args, options: LogsOptions) =>
    (await import("#cli/commands/logs.ts")).logs(session, args, options),
  )
    .description("Print the functions' log lines about an object, or of one correlation id. The oldest come first.")
    .addArgument(new Argument("[object...]", kindArgument))
    .option("--id <correlation>", "only lines with this correlation id: of one push, call or tick")
    .option("--audit", "print the audit log instead: who changed what (for administrators)")
    .option("--cluster <name>", "for a Sync or a group: on this cluster")
    .option("--since <duration>", "only lines as old as this: at most 31 days, two years with --audit", "1h")
    .option("--limit <n>", "print at most this many lines", wholeNumber, 200)
    .option("-f, --follow", "keep running, and print new lines");

  add(program, "explain", async (session, args) =>
    (await import("#cli/commands/explain.ts")).explain(session, args[0] ?? ""),
  )
    .description("Describe the fields of a kind. -o json prints its JSON Schema.")
    .addArgument(new Argument("<field>", "KIND or KIND.spec.field"));
}
