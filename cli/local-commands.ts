/** The commands of `starling local`. */
import { Argument, type Command } from "commander";
import type { FaultsSetOptions } from "#cli/commands/local-faults.ts";
import type { LocalOptions } from "#cli/commands/local-folder.ts";
import type { LocalServeOptions, LocalUpOptions } from "#cli/commands/local-up.ts";
import { type AddCommand, wholeNumber } from "#cli/session/add-command.ts";

const stateHelp = "folder that keeps its data (default: ~/.local/state/starling/local)";

export function localCommands(program: Command, add: AddCommand): void {
  const local = program
    .command("local")
    .description("Run Starling on this machine, with emulators, clusters and a git server.");
  add(local, "up", async (session, _args, options: LocalUpOptions) =>
    (await import("#cli/commands/local-up.ts")).localUp(session, options),
  )
    .description(
      "Start it in the background, and make it the current context. Its clusters are embedded ones, one of envtest, or your own.",
    )
    .option("--state <folder>", stateHelp)
    .option("--clusters <n>", "number of embedded clusters, in three rings (default: 3)", wholeNumber)
    .option("--kubeconfig <file>", "use your own cluster: the one of --context in this file")
    .option("--envtest", "use a real kube-apiserver, from KUBEBUILDER_ASSETS or /usr/local/kubebuilder/bin")
    .option("--port <n>", "port of its API (default: a free port, the same at every start)", wholeNumber)
    .option("--git-port <n>", "port of its git server (default: a free port, the same at every start)", wholeNumber)
    .option(
      "--cluster-port <n>",
      "port of its clusters' API servers (default: a free port, the same at every start)",
      wholeNumber,
    )
    .option("--repo <path>", "serve this git repository of this machine, or an https URL")
    .option("--path <folder>", "roll out this folder of the repository: creates a Source and a SyncGroup")
    .option("--ref <name>", "with --path: a branch, a tag or a commit id (default: HEAD)")
    .option("--foreground", "stay in the foreground; Ctrl-C stops it");
  add(local, "down", async (session, _args, options: LocalOptions) =>
    (await import("#cli/commands/local.ts")).localDown(session, options),
  )
    .description("Stop it, and wait until it has ended. Its data is kept for the next start.")
    .option("--state <folder>", stateHelp);
  add(local, "status", async (session, _args, options: LocalOptions) =>
    (await import("#cli/commands/local.ts")).localStatus(session, options),
  )
    .description("Show what runs at which address, and the state of its clusters. Exit 1 when it is not up.")
    .option("--state <folder>", stateHelp);
  add(local, "kubeconfig", async (session, _args, options: LocalOptions) =>
    (await import("#cli/commands/local.ts")).localKubeconfig(session, options),
  )
    .description("Print a kubeconfig of its clusters, with one context for each.")
    .option("--state <folder>", stateHelp);
  faultCommands(local, add);
  add(local, "alarm", async (session, args, options: LocalOptions) =>
    (await import("#cli/commands/local-alarm.ts")).localAlarm(session, args, options),
  )
    .description("Set the state of a CloudWatch alarm of it, for the gates of stages. It ends when the machine stops.")
    .addArgument(new Argument("<name>", "name of the alarm"))
    .addArgument(new Argument("<state>", "OK, ALARM or INSUFFICIENT_DATA"))
    .option("--state <folder>", stateHelp);
  add(local, "serve", async (session, _args, options: LocalServeOptions) =>
    (await import("#cli/commands/local-up.ts")).localServe(session, options),
  )
    .requiredOption("--folder <path>")
    .requiredOption("--plan <json>")
    .option("--attached");
}

function faultCommands(local: Command, add: AddCommand): void {
  const targetHelp = "aws, or clusters/NAME";
  const faults = add(local, "faults", async (session, _args, options: LocalOptions) =>
    (await import("#cli/commands/local-faults.ts")).localFaults(session, options),
  )
    .description("List the injected faults. They last until they are cleared or the machine stops.")
    .option("--state <folder>", stateHelp);
  add(faults, "set", async (session, args, options: FaultsSetOptions) =>
    (await import("#cli/commands/local-faults.ts")).localFaultsSet(session, args, options),
  )
    .description(
      "Inject faults: set aws hostile, set clusters/canary-1 latency=500ms. Without settings: list what can be set.",
    )
    .addArgument(new Argument("<target>", targetHelp))
    .addArgument(new Argument("[settings...]", "NAME=VALUE, NAME=off, or a preset of aws: quiet, everyday, hostile"))
    .option("--seed <n>", "seed of the random faults; `local faults` prints it")
    .option("--state <folder>", stateHelp);
  add(faults, "clear", async (session, args, options: LocalOptions) =>
    (await import("#cli/commands/local-faults.ts")).localFaultsClear(session, args[0], options),
  )
    .description("Clear the faults of one target, or of all.")
    .addArgument(new Argument("[target]", targetHelp))
    .option("--state <folder>", stateHelp);
}
