/** Verbs that ask what something comes to, and write nothing. */
import { Argument, type Command, Option } from "commander";
import type { DiffOptions } from "#cli/commands/diff.ts";
import type { PlanOptions } from "#cli/commands/plan.ts";
import type { RenderCommandOptions } from "#cli/commands/render.ts";
import { type AddCommand, repeated } from "#cli/session/verb.ts";

const ownerArgument = "GROUP, sync/NAME or sync/GROUP.TEMPLATE";

function changeOptions(command: Command): Command {
  return command
    .option("--source <name=folder>", "a working folder in the place of what the Source has; may be repeated", repeated)
    .option(
      "--revision <[name=]revision>",
      "a branch, tag or commit of the Source's repository in the place of what it has; may be repeated",
      repeated,
    )
    .option("-f, --filename <path>", "documents in the place of those that are there; may be repeated", repeated)
    .option("-R, --recursive", "subfolders of -f too")
    .option("--offline", "ask no installation: the documents of -f and the folders of --source are all there is");
}

export function writeCommands(program: Command, verb: AddCommand): void {
  const render = verb(program, "render", async (session, args, options: RenderCommandOptions) =>
    (await import("#cli/commands/render.ts")).render(session, args[0] ?? "", options),
  )
    .description("What a group or Sync comes to: each distinct rendering once, with the clusters that have it.")
    .addArgument(new Argument("<subject>", ownerArgument))
    .option("--cluster <name>", "on this cluster only")
    .option("--show-origin", "also where each parameter and value was said")
    .option("--show-secrets", "values of Secrets as they are, instead of ***");
  changeOptions(render);

  const plan = verb(program, "plan", async (session, args, options: PlanOptions) =>
    (await import("#cli/commands/plan.ts")).plan(session, args, options),
  )
    .description("What would change where, against what clusters were assigned. Exit 1 when something would.")
    .addArgument(new Argument("[groups...]", "GROUP or sync/NAME; every group of the namespace when left out"))
    .option("--cluster <name>", "on this cluster only")
    .option("--all", "every difference, object and field");
  changeOptions(plan);

  const diff = verb(program, "diff", async (session, args, options: DiffOptions) =>
    (await import("#cli/commands/diff.ts")).diff(session, args, options),
  )
    .description(
      "What a cluster has otherwise than git, or git otherwise than what is assigned, as diff -u has it. Exit 1 when something is.",
    )
    .addArgument(
      new Argument("[subjects...]", `${ownerArgument}; with changes, every group they are about when left out`),
    )
    .option("--cluster <name>", "this cluster; of a group on several, one has to be said for --against live")
    .addOption(
      new Option(
        "--against <what>",
        "live: a cluster as it is; assigned: what it was given (the default with changes)",
      ).choices(["live", "assigned"]),
    )
    .option("--kube-context <name>", "go to the cluster as this context of your kubeconfig does")
    .option("--kubeconfig <file>", "the kubeconfig; KUBECONFIG, or ~/.kube/config, when left out")
    .option("--assume-role <name>", "role to go to an EKS cluster as, in its account; yourself when left out");
  changeOptions(diff);
}
