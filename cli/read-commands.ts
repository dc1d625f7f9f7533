/** The verbs that only look. */
import { Argument, type Command } from "commander";
import type { DescribeOptions } from "#cli/commands/describe.ts";
import type { EventsOptions } from "#cli/commands/events.ts";
import type { GetOptions } from "#cli/commands/get.ts";
import type { HistoryOptions } from "#cli/commands/history.ts";
import type { LogsOptions } from "#cli/commands/logs.ts";
import type { TreeOptions } from "#cli/commands/tree.ts";
import type { WaitOptions } from "#cli/commands/wait-for.ts";
import { type AddCommand, wholeNumber } from "#cli/session/verb.ts";

export const kindArgument = "KIND/NAME, or KIND and names (source, cluster, syncgroup, sync, rollout)";

export function readCommands(program: Command, verb: AddCommand): void {
  verb(program, "get", async (session, args, options: GetOptions) =>
    (await import("#cli/commands/get.ts")).get(session, args, options),
  )
    .description("List objects, worst first.")
    .addArgument(
      new Argument(
        "<kind>",
        "source, cluster, syncgroup, sync or rollout, several with commas between; or versions, or freezes",
      ),
    )
    .addArgument(new Argument("[names...]", "only these"))
    .option("-l, --selector <labels>", "by label: env=prod,ring in (a,b),!legacy")
    .option("--state <word>", "by state: Ready, Failed, Halted, ...")
    .option("--cluster <name>", "Syncs on this cluster")
    .option("--group <name>", "Syncs of this SyncGroup")
    .option("--limit <n>", "at most so many", wholeNumber, 500)
    .option("--continue <token>", "where the last list ended")
    .option("-w, --watch", "print again what changes");

  verb(program, "describe", async (session, args, options: DescribeOptions) =>
    (await import("#cli/commands/describe.ts")).describe(session, args, options),
  )
    .description("Everything about one object: what is desired, what is there, what is wrong, what to do.")
    .addArgument(new Argument("<object...>", kindArgument))
    .option("--cluster <name>", "a Sync of a group on this cluster; a group: what its templates are given there")
    .option("--objects <n>", "of a Sync: objects to show, the worst first", wholeNumber, 20)
    .option("--events <n>", "newest events to show", wholeNumber, 10);

  verb(program, "tree", async (session, args, options: TreeOptions) =>
    (await import("#cli/commands/tree.ts")).tree(session, args, options),
  )
    .description("What belongs to what: Syncs of a cluster or a group, objects of a Sync; the worst first.")
    .addArgument(new Argument("<object...>", "cluster/NAME, syncgroup/NAME or sync/NAME"))
    .option("--cluster <name>", "a Sync of a group on this cluster; a group: what its templates are given there")
    .option("--objects", "of a cluster or a group: the objects of each Sync, too")
    .option("--all", "also name what is well, and every object");

  verb(program, "history", async (session, args, options: HistoryOptions) =>
    (await import("#cli/commands/history.ts")).history(session, args, options),
  )
    .description("What it was brought to, the newest first, with commits and authors; of a Source what it had.")
    .addArgument(new Argument("<object...>", "GROUP, sync/NAME, sync/GROUP.TEMPLATE or source/NAME"))
    .option("--cluster <name>", "also what became of each there")
    .option("--limit <n>", "at most so many", wholeNumber, 10);

  verb(program, "events", async (session, args, options: EventsOptions) =>
    (await import("#cli/commands/events.ts")).events(session, args, options),
  )
    .description("What happened in the last 30 days, the oldest first: to an object, or to all groups of -n or -A.")
    .addArgument(new Argument("[object...]", `GROUP or ${kindArgument}; all groups when left out`))
    .option("--cluster <name>", "for a Sync of a group: on this cluster")
    .option("--limit <n>", "the newest so many", wholeNumber, 50)
    .option("-w, --watch", "go on with what comes");

  verb(program, "wait", async (session, args, options: WaitOptions) =>
    (await import("#cli/commands/wait-for.ts")).waitFor(session, args, options),
  )
    .description("Until objects are as --for says, 30 seconds where --timeout says nothing. Exit 4 when it passed.")
    .addArgument(new Argument("<object...>", kindArgument))
    .requiredOption("--for <goal>", "condition=TYPE[=STATUS], state=WORD, revision=REVISION, create or delete")
    .option("--cluster <name>", "for a Sync of a group: on this cluster");

  verb(program, "logs", async (session, args, options: LogsOptions) =>
    (await import("#cli/commands/logs.ts")).logs(session, args, options),
  )
    .description("What the functions have logged of an object, or under one correlation id, the oldest first.")
    .addArgument(new Argument("[object...]", kindArgument))
    .option("--id <correlation>", "all that one push, call or tick led to")
    .option("--audit", "the audit log instead: who changed what, for administrators")
    .option("--cluster <name>", "for a Sync or a group: on this cluster")
    .option("--since <duration>", "how far back: at most 31 days, of the audit log two years", "1h")
    .option("--limit <n>", "at most so many lines", wholeNumber, 200)
    .option("-f, --follow", "go on with what comes");

  verb(program, "explain", async (session, args) =>
    (await import("#cli/commands/explain.ts")).explain(session, args[0] ?? ""),
  )
    .description("The fields of a kind; with -o json its JSON Schema.")
    .addArgument(new Argument("<field>", "KIND or KIND.spec.field"));
}
