/** The verbs of `starling local`. */
import { Argument, type Command } from "commander";
import type { FaultsSetOptions } from "#cli/commands/local-faults.ts";
import type { LocalOptions } from "#cli/commands/local-folder.ts";
import type { LocalServeOptions, LocalUpOptions } from "#cli/commands/local-up.ts";
import { type AddCommand, wholeNumber } from "#cli/session/verb.ts";

const stateHelp = "where it keeps everything; default ~/.local/state/starling/local";

export function localCommands(program: Command, verb: AddCommand): void {
  const local = program.command("local").description("Starling on this machine: emulators, clusters, a git server.");
  verb(local, "up", async (session, _args, options: LocalUpOptions) =>
    (await import("#cli/commands/local-up.ts")).localUp(session, options),
  )
    .description("Start it in the background and make it the current context. It keeps one kind of clusters in sync.")
    .option("--state <folder>", stateHelp)
    .option("--clusters <n>", "embedded clusters, in three rings; default 3", wholeNumber)
    .option("--kubeconfig <file>", "a cluster of your own: the one of --context in this file")
    .option("--envtest", "a real kube-apiserver, from KUBEBUILDER_ASSETS or /usr/local/kubebuilder/bin")
    .option("--port <n>", "port of its API; default a free one, the same at every start", wholeNumber)
    .option("--git-port <n>", "port of its git server, likewise", wholeNumber)
    .option("--cluster-port <n>", "port of its clusters' API servers, likewise", wholeNumber)
    .option("--repo <path>", "a git repository of this machine to serve, or an https URL")
    .option("--path <folder>", "a folder of it, to be rolled out: makes its Source and its SyncGroup")
    .option("--ref <name>", "with --path: a branch, a tag or a commit id; what HEAD is when left out")
    .option("--foreground", "stay until Ctrl-C, which stops it");
  verb(local, "down", async (session, _args, options: LocalOptions) =>
    (await import("#cli/commands/local.ts")).localDown(session, options),
  )
    .description("Stop it, and wait until it is gone. What it holds is there at the next start.")
    .option("--state <folder>", stateHelp);
  verb(local, "status", async (session, _args, options: LocalOptions) =>
    (await import("#cli/commands/local.ts")).localStatus(session, options),
  )
    .description("What runs, where, and what its clusters show; exit 1 when it is not up.")
    .option("--state <folder>", stateHelp);
  verb(local, "kubeconfig", async (session, _args, options: LocalOptions) =>
    (await import("#cli/commands/local.ts")).localKubeconfig(session, options),
  )
    .description("The kubeconfig of its clusters, one context for each.")
    .option("--state <folder>", stateHelp);
  faultCommands(local, verb);
  verb(local, "serve", async (session, _args, options: LocalServeOptions) =>
    (await import("#cli/commands/local-up.ts")).localServe(session, options),
  )
    .requiredOption("--folder <path>")
    .requiredOption("--plan <json>")
    .option("--attached");
}

function faultCommands(local: Command, verb: AddCommand): void {
  const targetHelp = "aws, or clusters/NAME";
  const faults = verb(local, "faults", async (session, _args, options: LocalOptions) =>
    (await import("#cli/commands/local-faults.ts")).localFaults(session, options),
  )
    .description("What goes wrong on purpose, until it is cleared or the machine stops.")
    .option("--state <folder>", stateHelp);
  verb(faults, "set", async (session, args, options: FaultsSetOptions) =>
    (await import("#cli/commands/local-faults.ts")).localFaultsSet(session, args, options),
  )
    .description(
      "Let something go wrong: set aws hostile, set clusters/canary-1 latency=500ms; without settings, lists them.",
    )
    .addArgument(new Argument("<target>", targetHelp))
    .addArgument(new Argument("[settings...]", "NAME=VALUE, NAME=off, or a weather of aws: quiet, everyday, hostile"))
    .option("--seed <n>", "of what is left to chance; printed by faults")
    .option("--state <folder>", stateHelp);
  verb(faults, "clear", async (session, args, options: LocalOptions) =>
    (await import("#cli/commands/local-faults.ts")).localFaultsClear(session, args[0], options),
  )
    .description("End the faults of one target, or all.")
    .addArgument(new Argument("[target]", targetHelp))
    .option("--state <folder>", stateHelp);
}
