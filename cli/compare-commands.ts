/** Commands that render manifests and compare them. They write nothing. */
import { Argument, type Command, Option } from "commander";
import type { DiffOptions } from "#cli/commands/diff.ts";
import type { PlanOptions } from "#cli/commands/plan.ts";
import type { RenderCommandOptions } from "#cli/commands/render.ts";
import { type AddCommand, repeated } from "#cli/session/add-command.ts";

const ownerArgument = "GROUP, sync/NAME or sync/GROUP.TEMPLATE";

function changeOptions(command: Command): Command {
  return command
    .option(
      "--source <name=folder>",
      "use this working folder instead of the Source's content; may be repeated",
      repeated,
    )
    .option(
      "--revision <[name=]revision>",
      "use this branch, tag or commit of the Source's repository instead of its current revision; may be repeated",
      repeated,
    )
    .option("-f, --filename <path>", "use these documents instead of the applied ones; may be repeated", repeated)
    .option("-R, --recursive", "also read the subfolders of -f")
    .option("--offline", "ask no installation; use only the documents of -f and the folders of --source");
}

export function compareCommands(program: Command, add: AddCommand): void {
  const render = add(program, "render", async (session, args, options: RenderCommandOptions) =>
    (await import("#cli/commands/render.ts")).render(session, args[0] ?? "", options),
  )
    .description("Print the manifests of a group or Sync. Each distinct rendering is printed once, with its clusters.")
    .addArgument(new Argument("<group>", ownerArgument))
    .option("--cluster <name>", "only for this cluster")
    .option("--show-origin", "also show where each parameter and value is set")
    .option("--show-secrets", "show the values of Secrets instead of ***");
  changeOptions(render);

  const plan = add(program, "plan", async (session, args, options: PlanOptions) =>
    (await import("#cli/commands/plan.ts")).plan(session, args, options),
  )
    .description("Show what would change on which clusters, compared with the assigned renderings. Exit 1 for changes.")
    .addArgument(new Argument("[groups...]", "GROUP or sync/NAME (default: every group of the namespace)"))
    .option("--cluster <name>", "only for this cluster")
    .option("--all", "show every difference, object and field");
  changeOptions(plan);

  const diff = add(program, "diff", async (session, args, options: DiffOptions) =>
    (await import("#cli/commands/diff.ts")).diff(session, args, options),
  )
    .description("Compare a cluster with git, or git with what is assigned, as a unified diff. Exit 1 for differences.")
    .addArgument(new Argument("[groups...]", `${ownerArgument} (default, with changes: every group that they affect)`))
    .option("--cluster <name>", "only this cluster; required for --against live if the group has several clusters")
    .addOption(
      new Option(
        "--against <what>",
        "live: the objects in the cluster; assigned: the assigned rendering (the default with changes)",
      ).choices(["live", "assigned"]),
    )
    .option("--kube-context <name>", "connect to the cluster with this context of your kubeconfig")
    .option("--kubeconfig <file>", "the kubeconfig (default: KUBECONFIG, or ~/.kube/config)")
    .option("--assume-role <name>", "role to assume in the account of an EKS cluster (default: your own rights)");
  changeOptions(diff);
}
