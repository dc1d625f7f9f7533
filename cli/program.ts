/** The command tree: what there is, and what it calls. Verbs are loaded when they run. */

import { Argument, Command, Option } from "commander";
import type { ApplyCommandOptions } from "#cli/commands/apply.ts";
import type { AcceptOptions } from "#cli/commands/cluster-accept.ts";
import type { AddOptions } from "#cli/commands/cluster-add.ts";
import type { CheckOptions } from "#cli/commands/cluster-check.ts";
import type { ContextAddOptions } from "#cli/commands/context-add.ts";
import type { DeleteOptions } from "#cli/commands/delete.ts";
import type { FreezeOptions } from "#cli/commands/freeze.ts";
import type { InitOptions } from "#cli/commands/init.ts";
import type { PruneOptions } from "#cli/commands/prune.ts";
import type { ReconcileOptions } from "#cli/commands/reconcile.ts";
import type { RecoverOptions } from "#cli/commands/recover.ts";
import type { RolloutListOptions } from "#cli/commands/rollout.ts";
import type { RolloutStatusOptions } from "#cli/commands/rollout-status.ts";
import type { UiOptions } from "#cli/commands/ui.ts";
import type { ValidateOptions } from "#cli/commands/validate.ts";
import { localCommands } from "#cli/local-commands.ts";
import { outputs, parseOutput } from "#cli/output/output.ts";
import { kindArgument, readCommands } from "#cli/read-commands.ts";
import { exitCodes } from "#cli/session/failure.ts";
import type { CliIo } from "#cli/session/io.ts";
import { refuseRepeated } from "#cli/session/refuse-repeated.ts";
import { type GlobalOptions, openSession } from "#cli/session/session.ts";
import { usageWords } from "#cli/session/usage-words.ts";
import { type Action, type AddCommand, repeated, wholeNumber } from "#cli/session/verb.ts";
import { writeCommands } from "#cli/write-commands.ts";
import { starlingVersion } from "#shared/base/starling-version.ts";

const exitHelp = `
Exit codes: 0 done, equal or ready; 1 no (not ready, halted, failed, refused); 2 wrong input; 3 could not find out
(credentials, network, throttled, no such installation); 4 --timeout passed; 130 interrupted.`;

type Finish = (code: number) => void;

export function createProgram(io: CliIo, finish: Finish): Command {
  const program = new Command("starling")
    .description("Keeps any number of Kubernetes clusters in sync with git, with no control plane to run.")
    .addHelpText("after", exitHelp)
    .version(`starling ${starlingVersion}`, "--version", "the version of the command; starling version has more")
    .exitOverride()
    .configureOutput({
      writeOut: io.out,
      writeErr: io.err,
      outputError: (said, write) => write(usageWords(said)),
      getOutHelpWidth: () => io.columns,
      getErrHelpWidth: () => io.columns,
    })
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError("  next: starling --help")
    .helpCommand(false);
  globalOptions(program);

  /** Adds a verb whose action gets the session, its arguments and its own options. */
  function verb<Options>(parent: Command, name: string, action: Action<Options>): Command {
    const command = parent
      .command(name, { hidden: name === "serve" || name === "complete" })
      .configureHelp({ showGlobalOptions: false });
    command.showHelpAfterError(`  next: ${pathOf(command)} --help`);
    return command.action(async () => {
      const args = command.processedArgs.flat().filter((arg): arg is string => typeof arg === "string");
      // Flags of the parents too: whichever of them knows a flag takes it.
      const options = command.optsWithGlobals<GlobalOptions>();
      const session = openSession(io, options);
      finish(exitCodes[await action(session, args, options as Options)]);
    });
  }

  readCommands(program, verb);
  writeCommands(program, verb);
  changeCommands(program, verb);
  freezeCommands(program, verb);
  rolloutCommands(program, verb);
  clusterCommands(program, verb);
  recoverVerb(program, verb);
  runCommands(program, verb);
  refuseRepeated(program);
  return program;
}

function globalOptions(program: Command): void {
  program
    .option("--context <name>", "installation to talk to, from the context file")
    .option("--profile <name>", "AWS profile to sign with")
    .option("--region <name>", "AWS region of the installation")
    .option("-n, --namespace <name>", "Starling namespace")
    .option("-A, --all-namespaces", "all namespaces, where a list is asked for")
    .addOption(new Option("-o, --output <format>", "how to print").choices(outputs).argParser(parseOutput))
    .option("--no-headers", "tables without their first line")
    .option("--no-color", "no colour on a terminal either")
    .option("-q, --quiet", "no progress on stderr")
    .option("-v, --debug", "every request on stderr")
    .option("--timeout <duration>", "give up waiting after this long, e.g. 5m (exit code 4)")
    .option("--reason <text>", "why, kept with what is done")
    .option("--yes", "answer questions with yes");
}

function changeCommands(program: Command, verb: AddCommand): void {
  verb(program, "apply", async (session, _args, options: ApplyCommandOptions) =>
    (await import("#cli/commands/apply.ts")).apply(session, options),
  )
    .description("Apply documents: all are checked before one is written.")
    .requiredOption("-f, --filename <path>", "a file, a folder, or - for standard input; may be repeated", repeated)
    .option("-R, --recursive", "subfolders too")
    .addOption(
      new Option("--dry-run <where>", "check only: client (offline) or server")
        .choices(["none", "client", "server"])
        .default("none")
        .preset("client"),
    );

  verb(program, "validate", async (session, _args, options: ValidateOptions) =>
    (await import("#cli/commands/validate.ts")).validate(session, options),
  )
    .description("Check documents offline: file, line, field and remedy of every problem.")
    .requiredOption("-f, --filename <path>", "a file, a folder, or - for standard input; may be repeated", repeated)
    .option("-R, --recursive", "subfolders too");

  verb(program, "delete", async (session, args, options: DeleteOptions) =>
    (await import("#cli/commands/delete.ts")).remove(session, args, options),
  )
    .description("Delete objects, after showing what goes with them.")
    .addArgument(new Argument("<object...>", kindArgument))
    .addOption(
      new Option("--cascade <what>", "what becomes of the objects in the clusters")
        .choices(["delete", "orphan"])
        .default("delete"),
    )
    .option("--wait", "until it is gone");

  verb(program, "prune", async (session, args, options: PruneOptions) =>
    (await import("#cli/commands/prune.ts")).prune(session, args, options),
  )
    .description("Delete what a Sync once applied and nobody recorded, as a restored cluster has it; shown first.")
    .addArgument(new Argument("<sync...>", "sync/NAME"))
    .option("--cluster <name>", "for a Sync of a group: on this cluster")
    .option("--dry-run", "only show what would go");

  for (const word of ["suspend", "resume"] as const) {
    verb(program, word, async (session, args) =>
      (await import("#cli/commands/reconcile.ts")).suspendOrResume(session, word, args),
    )
      .description(
        word === "suspend" ? "Stop acting on an object until it is resumed." : "Go on where suspend stopped.",
      )
      .addArgument(new Argument("<object...>", kindArgument));
  }

  verb(program, "reconcile", async (session, args, options: ReconcileOptions) =>
    (await import("#cli/commands/reconcile.ts")).reconcile(session, args, options),
  )
    .description("Look at an object now instead of at its interval.")
    .addArgument(new Argument("<object...>", kindArgument))
    .option("--with-source", "ask its Sources first")
    .option("--wait", "until it is done; fails unless all is well");
}

function freezeCommands(program: Command, verb: AddCommand): void {
  verb(program, "freeze", async (session, args, options: FreezeOptions) =>
    (await import("#cli/commands/freeze.ts")).freezeClusters(session, args[0], options),
  )
    .description("The brake: nothing is written to any cluster that it covers. Needs --reason.")
    .addArgument(new Argument("[name]", "to thaw it by; freeze when left out"))
    .option("--clusters <labels>", "only clusters with these labels: env=prod,ring in (a,b); all when left out")
    .option("--until <time>", "ends by itself: 2026-11-22T18:00:00Z, or after 2h");

  verb(program, "thaw", async (session, args) =>
    (await import("#cli/commands/freeze.ts")).thawClusters(session, args[0]),
  )
    .description("Lift a freeze; what it held goes on at once.")
    .addArgument(new Argument("[name]", "which one; the only one when left out"));
}

function rolloutCommands(program: Command, verb: AddCommand): void {
  const rollout = program.command("rollout").description("How a revision travels through the clusters.");
  verb(rollout, "list", async (session, args, options: RolloutListOptions) =>
    (await import("#cli/commands/rollout.ts")).rolloutList(session, args[0], options),
  )
    .description("Rollouts of a group, newest first; without one, the newest of each.")
    .addArgument(new Argument("[group]", "GROUP, syncgroup/GROUP or sync/NAME"))
    .option("--limit <n>", "at most so many", wholeNumber, 20);

  verb(rollout, "status", async (session, args, options: RolloutStatusOptions) =>
    (await import("#cli/commands/rollout-status.ts")).rolloutStatus(session, args[0] ?? "", options),
  )
    .description(
      "What each stage is on, what goes through it, and what is waited for. Exit 1 when something stands still.",
    )
    .addArgument(new Argument("<group>", "GROUP, syncgroup/GROUP or sync/NAME"))
    .option("--number <n>", "the way of this one content through the stages")
    .option("--stage <name>", "clusters of this stage")
    .option("--state <words>", "clusters in these states, comma between")
    .option("--all", "a line for every cluster")
    .option("-w, --watch", "until the newest content, or the one of --number, has ended");

  verb(rollout, "restart", async (session, args) =>
    (await import("#cli/commands/rollout.ts")).rolloutRestart(session, args[0] ?? ""),
  )
    .description("Seal anew what is under way, with the clusters, inputs and stages of now; what has passed stays.")
    .addArgument(new Argument("<group>", "GROUP, syncgroup/GROUP or sync/NAME"));
}

function clusterCommands(program: Command, verb: AddCommand): void {
  const cluster = program.command("cluster").description("What is done to a cluster itself.");
  verb(cluster, "accept", async (session, args, options: AcceptOptions) =>
    (await import("#cli/commands/cluster-accept.ts")).clusterAccept(session, args[0] ?? "", options),
  )
    .description(
      "Say that the cluster which answers now, a rebuilt one, is the one that is meant. Its Syncs begin anew.",
    )
    .addArgument(new Argument("<name>"))
    .option("--uid <uid>", "of its kube-system namespace; the one that was seen last when left out");

  verb(cluster, "add", async (session, args, options: AddOptions) =>
    (await import("#cli/commands/cluster-add.ts")).clusterAdd(session, args, options),
  )
    .description(
      "Register EKS clusters, and print what remains to be done in their accounts. -o yaml prints the documents.",
    )
    .addArgument(new Argument("[arns...]", "of EKS clusters"))
    .option("-l, --selector <tags>", "clusters with all of these tags in EKS: env=prod,team=web")
    .option("--account <ids>", "with -l: in these accounts, comma between")
    .option("--regions <names>", "with -l: in these regions, comma between; AWS_REGION when left out")
    .option("--assume-role <name>", "role to see and enter clusters with, in the account of each")
    .option(
      "--name <template>",
      "of the Clusters' names, also of {{ eks.accountId }} and {{ eks.region }}",
      "{{ eks.name }}",
    )
    .option("--label <key=value>", "of the Clusters; repeat for several", repeated, [])
    .option(
      "--role <name>",
      "spec.access.role.name of all; left out, INSTALLATION/clusters/NAME for those of other accounts",
    )
    .option("--apply-role <arn>", "whom they let in: output ApplyRole; left out, as the context's stack says")
    .option("--group <name>", "Kubernetes group that Starling is in", "starling")
    .option("--grant", "also create the access entries and the RBAC objects, with your own rights")
    .option("--dry-run", "ask the API, and write nothing anywhere");
  verb(cluster, "rbac", async (session, _args, options: AddOptions) =>
    (await import("#cli/commands/cluster-add.ts")).clusterRbac(session, options),
  )
    .description("Print what Starling's group may do in a cluster, for kubectl apply --server-side -f -.")
    .option("--group <name>", "that the access entry gives", "starling");
  verb(cluster, "check", async (session, args, options: CheckOptions) =>
    (await import("#cli/commands/cluster-check.ts")).clusterCheck(session, args, options),
  )
    .description("Go the way to clusters as Starling does, and say which link is broken and what mends it.")
    .addArgument(new Argument("[names...]", "only these"))
    .option("-l, --selector <labels>", "by label: env=prod,ring in (a,b),!legacy")
    .option("--all", "every cluster")
    .option("--as-me", "also read, with your own rights, whom a role trusts that refuses Starling")
    .option("--assume-role <name>", "with --as-me: role to read it with, in the account of each cluster");
}

function recoverVerb(program: Command, verb: AddCommand): void {
  verb(program, "recover", async (session, args, options: RecoverOptions) =>
    (await import("#cli/commands/recover.ts")).recover(session, args, options),
  )
    .description("After the table was restored or lost: go on from what the clusters remember, to what git has now.")
    .addArgument(new Argument("[clusters...]", "only these"))
    .option("--all", "every cluster")
    .option("--dry-run", "only show what the rows have, and what the clusters remember")
    .option("--from <owner>", "take over from an installation, or a Sync's uid, that is gone");
}

function runCommands(program: Command, verb: AddCommand): void {
  verb(program, "init", async (session, args, options: InitOptions) =>
    options.local === true
      ? (await import("#cli/commands/local-fleet.ts")).initLocal(session, args[0], options)
      : (await import("#cli/commands/init.ts")).init(session, args[0], options),
  )
    .description("Write an example fleet to start from; nothing is overwritten.")
    .addArgument(new Argument("[folder]", "where").default("starling"))
    .option("--source <url>", "git repository to roll out")
    .option("--path <folder>", "folder of it with the manifests")
    .option("--local", "for the repository and the clusters of starling local up, instead of an example")
    .option("--state <folder>", "with --local: where the machine keeps everything");

  const context = program.command("context").description("The installations this machine knows.");
  verb(context, "list", async (session) => (await import("#cli/commands/context.ts")).contextList(session)).description(
    "Contexts of the context file; * is the current one.",
  );
  verb(context, "use", async (session, args) =>
    (await import("#cli/commands/context.ts")).contextUse(session, args[0] ?? ""),
  )
    .description("Choose the current context.")
    .addArgument(new Argument("<name>"));

  verb(context, "add", async (session, args, options: ContextAddOptions) =>
    (await import("#cli/commands/context-add.ts")).contextAdd(session, args[0] ?? "", options),
  )
    .description("Add an installation, and make it current. --profile, --region and -n are kept with it.")
    .addArgument(new Argument("<name>"))
    .option("--stack <name>", "the control stack, whose outputs say where it is: starling-control")
    .option("--url <url>", "of its API instead: output ApiUrl of the control stack")
    .option("--role <arn>", "role to assume before requests are signed");
  verb(context, "show", async (session, args) =>
    (await import("#cli/commands/context.ts")).contextShow(session, args[0]),
  )
    .description("One context, without its keys.")
    .addArgument(new Argument("[name]", "the current one when left out"));
  verb(context, "remove", async (session, args) =>
    (await import("#cli/commands/context.ts")).contextRemove(session, args[0] ?? ""),
  )
    .description("Forget a context; the installation stays as it is.")
    .addArgument(new Argument("<name>"));

  verb<UiOptions>(program, "ui", async (session, _args, options) =>
    (await import("#cli/commands/ui.ts")).ui(session, options),
  )
    .description(
      "Serve the pages on this machine, with your own rights: fleet, versions, rollouts, clusters, Syncs. Ends with Ctrl-C.",
    )
    .option("--port <n>", "port of the pages (default: any that is free)", wholeNumber);
  verb(program, "whoami", async (session) => (await import("#cli/commands/whoami.ts")).whoami(session)).description(
    "Whom the installation takes you for.",
  );

  verb(program, "doctor", async (session) => (await import("#cli/commands/doctor.ts")).doctor(session)).description(
    "Look at each link between this command and an installation that works. Exit 1 when one is wrong.",
  );

  localCommands(program, verb);

  verb(program, "version", async (session) => (await import("#cli/commands/version.ts")).version(session)).description(
    "Version of this command.",
  );

  verb(program, "completion", async (session, args) =>
    (await import("#cli/commands/completion.ts")).completion(session, args[0] ?? ""),
  )
    .description("A completion script: source <(starling completion bash), or starling completion fish | source")
    .addArgument(new Argument("<shell>").choices(["bash", "zsh", "fish"]));

  verb(program, "complete", async (session, args) =>
    (await import("#cli/commands/complete.ts")).complete(session, args, program),
  )
    .description("What may stand where the last word is being written: for the completion scripts.")
    .addArgument(new Argument("[words...]"));
}

/** As it is typed: `starling local up`. */
function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}
