/** The commands below `starling rollout`. */
import { Argument, type Command } from "commander";
import type { RolloutListOptions } from "#cli/commands/rollout.ts";
import type { RolloutStatusOptions } from "#cli/commands/rollout-status.ts";
import type {
  ApprovalOptions,
  ExemptOptions,
  HoldOptions,
  PromoteOptions,
  ReleaseOptions,
  RetryOptions,
  RollbackOptions,
  SkipOptions,
} from "#cli/commands/rollout-verbs.ts";
import { addKubectlVerbs } from "#cli/kubectl-rollout-verbs.ts";
import { type AddCommand, wholeNumber } from "#cli/session/add-command.ts";

export function rolloutCommands(program: Command, add: AddCommand): void {
  const rollout = program
    .command("rollout")
    .description("List rollouts, show their progress, and stop or change them.");
  add(rollout, "list", async (session, args, options: RolloutListOptions) =>
    (await import("#cli/commands/rollout.ts")).rolloutList(session, args[0], options),
  )
    .description("List the rollouts of a group, the newest first. Without a group: the newest rollout of each group.")
    .addArgument(new Argument("[group]", "GROUP, syncgroup/GROUP or sync/NAME"))
    .option("--limit <n>", "list at most this many", wholeNumber, 20);

  add(rollout, "status", async (session, args, options: RolloutStatusOptions) =>
    (await import("#cli/commands/rollout-status.ts")).rolloutStatus(session, args[0] ?? "", options),
  )
    .description(
      "Show the current rollout of each stage, the rollouts in progress, and what they wait for. Exit 1 if one is halted.",
    )
    .addArgument(new Argument("<group>", "GROUP, syncgroup/GROUP or sync/NAME"))
    .option("--number <n>", "show this one rollout in each stage")
    .option("--stage <name>", "only clusters of this stage")
    .option("--state <words>", "only clusters in these states, separated by commas")
    .option("--all", "print a line for every cluster")
    .option("-w, --watch", "keep running until the newest rollout, or the one of --number, has ended");

  add(rollout, "refresh", async (session, args) =>
    (await import("#cli/commands/rollout.ts")).rolloutRefresh(session, args[0] ?? ""),
  )
    .description(
      "Take a new snapshot of clusters, inputs and stages for the rollouts in progress. Stages that have passed keep theirs.",
    )
    .addArgument(new Argument("<group>", "GROUP, syncgroup/GROUP or sync/NAME"));

  add(rollout, "hold", async (session, args, options: HoldOptions) =>
    (await import("#cli/commands/rollout-verbs.ts")).rolloutHold(session, args[0] ?? "", options),
  )
    .description(
      "Start no newer rollout in any stage. Rollouts in progress, catch-ups and deletions go on. Requires --reason.",
    )
    .addArgument(new Argument("<group>", "GROUP, syncgroup/GROUP or sync/NAME"))
    .option("--until <time>", "end the hold at this time, or after this long: 2026-11-22T18:00:00Z, 2h");

  add(rollout, "release", async (session, args, options: ReleaseOptions) =>
    (await import("#cli/commands/rollout-verbs.ts")).rolloutRelease(session, args[0] ?? "", options),
  )
    .description("End a hold. The newest rollout starts in the first stage.")
    .addArgument(new Argument("<group>", "GROUP, syncgroup/GROUP or sync/NAME"))
    .option("--to <n>", "start only this rollout, and go on holding the others", wholeNumber);

  add(rollout, "approve", async (session, args, options: ApprovalOptions) =>
    (await import("#cli/commands/rollout-verbs.ts")).rolloutApprove(session, args[0] ?? "", options),
  )
    .description("Approve the plan that a stage waits with. Requires --reason.")
    .addArgument(new Argument("<group>", "GROUP, syncgroup/GROUP or sync/NAME"))
    .option("--stage <name>", "the stage that waits (required)")
    .option("--plan <hash>", "the hash of the plan, as rollout status shows it (required)");

  add(rollout, "promote", async (session, args, options: PromoteOptions) =>
    (await import("#cli/commands/rollout-verbs.ts")).rolloutPromote(session, args[0] ?? "", options),
  )
    .description("End a bake, or pass a stage that lacks evidence, answers or gates. Requires --reason.")
    .addArgument(new Argument("<group>", "GROUP, syncgroup/GROUP or sync/NAME"))
    .option("--stage <name>", "the stage to pass (required)")
    .option("--number <n>", "pass it only if it updates to this rollout", wholeNumber);

  add(rollout, "rollback", async (session, args, options: RollbackOptions) =>
    (await import("#cli/commands/rollout-verbs.ts")).rolloutRollback(session, args[0] ?? "", options),
  )
    .description(
      "Take every stage that has something newer back to an older rollout, at once and without gates, and hold the group. Requires --reason.",
    )
    .addArgument(new Argument("<group>", "GROUP, syncgroup/GROUP or sync/NAME"))
    .option(
      "--to <rollout>",
      "number, revision or commit of the rollout to go back to (default: the one before the newest)",
    )
    .option("--delete-added", "also delete the templates that later rollouts added, with all their objects")
    .option("--dry-run", "print what it would do, and change nothing");

  add(rollout, "reject", async (session, args, options: ApprovalOptions) =>
    (await import("#cli/commands/rollout-verbs.ts")).rolloutReject(session, args, options),
  )
    .description(
      "Assign a rollout to no further cluster, or reject the plan of a check. Clusters that have it keep it, and newer rollouts go on. Requires --reason.",
    )
    .addArgument(new Argument("<group>", "GROUP, syncgroup/GROUP or sync/NAME"))
    .addArgument(new Argument("[n]", "number of the rollout"))
    .option("--stage <name>", "the stage whose check is answered, instead of a number")
    .option("--plan <hash>", "the hash of the plan that is checked, as rollout status shows it");

  add(rollout, "unreject", async (session, args) =>
    (await import("#cli/commands/rollout-verbs.ts")).rolloutUnreject(session, args[0] ?? "", args[1] ?? ""),
  )
    .description("Take a rejection back: the rollout may be assigned again. Requires --reason.")
    .addArgument(new Argument("<group>", "GROUP, syncgroup/GROUP or sync/NAME"))
    .addArgument(new Argument("<n>", "number of the rollout"));

  add(rollout, "retry", async (session, args, options: RetryOptions) =>
    (await import("#cli/commands/rollout-verbs.ts")).rolloutRetry(session, args[0] ?? "", options),
  )
    .description(
      "Give failed clusters another turn, and skipped ones that it names, without a newer rollout. Requires --reason.",
    )
    .addArgument(new Argument("<group>", "GROUP, syncgroup/GROUP or sync/NAME"))
    .option("--cluster <name>", "only this cluster")
    .option("-l, --selector <labels>", "only clusters with these labels: env=prod,ring in (a,b),!legacy")
    .option("--state <word>", "failed: every failed cluster (default)");

  add(rollout, "skip", async (session, args, options: SkipOptions) =>
    (await import("#cli/commands/rollout-verbs.ts")).rolloutSkip(session, args[0] ?? "", options),
  )
    .description(
      "Take clusters out of the rollouts in progress, until a retry names them or a newer rollout comes. Budgets stay as they are. Requires --reason.",
    )
    .addArgument(new Argument("<group>", "GROUP, syncgroup/GROUP or sync/NAME"))
    .option("--cluster <name>", "this cluster")
    .option("-l, --selector <labels>", "clusters with these labels: env=prod,ring in (a,b),!legacy");

  add(rollout, "exempt", async (session, args, options: ExemptOptions) =>
    (await import("#cli/commands/rollout-verbs.ts")).rolloutExempt(session, args[0] ?? "", options),
  )
    .description("Let a group change outside its windows for a while. Requires --reason.")
    .addArgument(new Argument("<group>", "GROUP, syncgroup/GROUP or sync/NAME"))
    .option("--until <time>", "end at this time, or after this long: 2026-11-22T18:00:00Z, 2h (required)")
    .option("--window <name...>", "only outside these Windows");

  add(rollout, "unexempt", async (session, args) =>
    (await import("#cli/commands/rollout-verbs.ts")).rolloutUnexempt(session, args[0] ?? ""),
  )
    .description("End the exemption of a group from its windows. Assigned attempts may still begin.")
    .addArgument(new Argument("<group>", "GROUP, syncgroup/GROUP or sync/NAME"));
  addKubectlVerbs(rollout, add);
}
