/** The command tree. The module of a command is loaded when the command runs. */

import { Argument, Command, Option } from "commander";
import type { ApplyCommandOptions } from "#cli/commands/apply.ts";
import type { AcceptOptions } from "#cli/commands/cluster-accept.ts";
import type { AddOptions } from "#cli/commands/cluster-add.ts";
import type { CheckOptions } from "#cli/commands/cluster-check.ts";
import type { ContextAddOptions } from "#cli/commands/context-add.ts";
import type { CordonOptions } from "#cli/commands/cordon.ts";
import type { DeleteOptions } from "#cli/commands/delete.ts";
import type { FreezeOptions } from "#cli/commands/freeze.ts";
import type { InitOptions } from "#cli/commands/init.ts";
import type { PruneOptions } from "#cli/commands/prune.ts";
import type { ReconcileOptions, SuspendOptions } from "#cli/commands/reconcile.ts";
import type { RecoverOptions } from "#cli/commands/recover.ts";
import type { UiOptions } from "#cli/commands/ui.ts";
import type { ValidateOptions } from "#cli/commands/validate.ts";
import type { ZoneCheckOptions } from "#cli/commands/zone-check.ts";
import { compareCommands } from "#cli/compare-commands.ts";
import { guardCommands } from "#cli/guard-commands.ts";
import { kubectlRolloutVerbs } from "#cli/kubectl-rollout-verbs.ts";
import { localCommands } from "#cli/local-commands.ts";
import { outputs, parseOutput } from "#cli/output/output.ts";
import { kindArgument, readCommands } from "#cli/read-commands.ts";
import { rolloutCommands } from "#cli/rollout-commands.ts";
import { type Action, type AddCommand, repeated, wholeNumber } from "#cli/session/add-command.ts";
import { exitCodes } from "#cli/session/failure.ts";
import type { GuardedIo } from "#cli/session/io.ts";
import { refuseRepeated } from "#cli/session/refuse-repeated.ts";
import { type GlobalOptions, openSession } from "#cli/session/session.ts";
import { usageWords } from "#cli/session/usage-words.ts";
import { sourceCommands } from "#cli/source-commands.ts";
import { starlingVersion } from "#shared/base/starling-version.ts";

const exitHelp = `
Exit codes: 0 done, equal or ready; 1 not ready, halted, failed, different or refused; 2 wrong input; 3 unknown
(credentials, network, throttled, no such installation); 4 the time of --timeout is over; 130 interrupted.`;

/** Commands that the command or its completion calls, and verbs of kubectl. */
const hiddenCommands: ReadonlySet<string> = new Set([
  ...["starling complete", "starling local serve"],
  ...kubectlRolloutVerbs.map((verb) => `starling rollout ${verb}`),
]);

type Finish = (code: number) => void;

export function createProgram(io: GuardedIo, finish: Finish): Command {
  const program = new Command("starling")
    .description("Keeps any number of Kubernetes clusters in sync with git, with no control plane to run.")
    .addHelpText("after", exitHelp)
    .version(
      `starling ${starlingVersion}`,
      "--version",
      "print the version of this command; `starling version` prints more",
    )
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

  /** Adds a command. Its action gets the session, the arguments and the options of the command. */
  function add<Options>(parent: Command, name: string, action: Action<Options>): Command {
    const command = parent
      .command(name, { hidden: hiddenCommands.has(`${pathOf(parent)} ${name}`) })
      .configureHelp({ showGlobalOptions: false });
    command.showHelpAfterError(`  next: ${pathOf(command)} --help`);
    return command.action(async () => {
      const args = command.processedArgs.flat().filter((arg): arg is string => typeof arg === "string");
      // With the flags of the parents: a parent that knows a flag takes it from the line.
      const options = command.optsWithGlobals<GlobalOptions>();
      const session = openSession(io, options);
      finish(exitCodes[await action(session, args, options as Options)]);
    });
  }

  readCommands(program, add);
  compareCommands(program, add);
  changeCommands(program, add);
  freezeCommands(program, add);
  cordonCommands(program, add);
  rolloutCommands(program, add);
  guardCommands(program, add);
  sourceCommands(program, add);
  clusterCommands(program, add);
  zoneCommands(program, add);
  receiverCommands(program, add);
  recoverCommand(program, add);
  runCommands(program, add);
  for (const parent of program.commands.filter(({ commands }) => commands.length > 0))
    parent.showHelpAfterError(`  next: ${pathOf(parent)} --help`);
  refuseRepeated(program);
  return program;
}

function globalOptions(program: Command): void {
  program
    .option("--context <name>", "context of the installation, from the context file")
    .option("--profile <name>", "AWS profile that signs the requests")
    .option("--region <name>", "AWS region of the installation")
    .option("-n, --namespace <name>", "Starling namespace")
    .option("-A, --all-namespaces", "list objects of all namespaces")
    .addOption(new Option("-o, --output <format>", "output format").choices(outputs).argParser(parseOutput))
    .option("--no-headers", "print tables without headers")
    .option("--no-color", "print without colours")
    .option("-q, --quiet", "print no progress on stderr")
    .option("-v, --debug", "print every request on stderr")
    .option("--timeout <duration>", "stop waiting after this time, such as 5m (exit code 4)")
    .option("--reason <text>", "record this reason with the change")
    .option("--yes", "answer every question with yes");
}

function changeCommands(program: Command, add: AddCommand): void {
  add(program, "apply", async (session, _args, options: ApplyCommandOptions) =>
    (await import("#cli/commands/apply.ts")).apply(session, options),
  )
    .description("Apply documents. All of them are checked before the first one is written.")
    .requiredOption("-f, --filename <path>", "a file, a folder, or - for standard input; may be repeated", repeated)
    .option("-R, --recursive", "subfolders too")
    .option("--guard-hash <hash>", "pass the change that a guard would withhold; may be repeated", repeated)
    .addOption(
      new Option("--dry-run <where>", "only check, on the client (offline) or on the server")
        .choices(["none", "client", "server"])
        .default("none")
        .preset("client"),
    );

  add(program, "validate", async (session, _args, options: ValidateOptions) =>
    (await import("#cli/commands/validate.ts")).validate(session, options),
  )
    .description("Check documents offline. Prints file, line, field and remedy of every problem.")
    .requiredOption("-f, --filename <path>", "a file, a folder, or - for standard input; may be repeated", repeated)
    .option("-R, --recursive", "subfolders too");

  add(program, "delete", async (session, args, options: DeleteOptions) =>
    (await import("#cli/commands/delete.ts")).remove(session, args, options),
  )
    .description("Delete objects. Shows first what is deleted with them, and asks.")
    .addArgument(new Argument("<object...>", kindArgument))
    .addOption(
      new Option("--cascade <what>", "delete the objects in the clusters too, or orphan them: leave them there")
        .choices(["delete", "orphan"])
        .default("delete"),
    )
    .option("--wait", "wait until the objects are deleted");

  add(program, "prune", async (session, args, options: PruneOptions) =>
    (await import("#cli/commands/prune.ts")).prune(session, args, options),
  )
    .description(
      "Delete objects with a Sync's label that its inventory lacks, as in a restored cluster. Shows them first.",
    )
    .addArgument(new Argument("<sync...>", "sync/NAME"))
    .option("--cluster <name>", "for a Sync of a group: on this cluster")
    .option("--dry-run", "only show what would be deleted");

  add(program, "suspend", async (session, args, options: SuspendOptions) =>
    (await import("#cli/commands/reconcile.ts")).suspendOrResume(session, "suspend", args, options),
  )
    .description("Suspend objects: Starling stops acting on them until they are resumed, or until --until.")
    .addArgument(new Argument("<object...>", kindArgument))
    .option("--until <time>", "end the suspension at this time, or after this long: 2026-11-22T18:00:00Z, 2h");

  add(program, "resume", async (session, args) =>
    (await import("#cli/commands/reconcile.ts")).suspendOrResume(session, "resume", args, {}),
  )
    .description("Resume suspended objects.")
    .addArgument(new Argument("<object...>", kindArgument));

  add(program, "reconcile", async (session, args, options: ReconcileOptions) =>
    (await import("#cli/commands/reconcile.ts")).reconcile(session, args, options),
  )
    .description("Reconcile an object now, before its interval is over.")
    .addArgument(new Argument("<object...>", kindArgument))
    .option("--with-source", "poll its Sources first")
    .option("--wait", "wait until it is done; fails unless the object is ready");
}

function freezeCommands(program: Command, add: AddCommand): void {
  add(program, "freeze", async (session, args, options: FreezeOptions) =>
    (await import("#cli/commands/freeze.ts")).freezeClusters(session, args[0], options),
  )
    .description("Stop all writes to the clusters that a freeze selects. Requires --reason.")
    .addArgument(new Argument("[name]", "name of the freeze (default: freeze)"))
    .option("--clusters <labels>", "only clusters with these labels: env=prod,ring in (a,b) (default: all clusters)")
    .option("--until <time>", "end the freeze at this time, or after this long: 2026-11-22T18:00:00Z, 2h");

  add(program, "thaw", async (session, args) =>
    (await import("#cli/commands/freeze.ts")).thawClusters(session, args[0]),
  )
    .description("Lift a freeze. The clusters that it held continue at once.")
    .addArgument(new Argument("[name]", "name of the freeze (default: the only one)"));
}

function cordonCommands(program: Command, add: AddCommand): void {
  add(program, "cordon", async (session, args, options: CordonOptions) =>
    (await import("#cli/commands/cordon.ts")).cordonByName(session, args[0] ?? "", options),
  )
    .description("Assign nothing new to a cluster. Drift is still corrected. Requires --reason.")
    .addArgument(new Argument("<cluster>", "name of the cluster"))
    .option("--until <time>", "end the cordon at this time, or after this long: 2026-11-22T18:00:00Z, 2h");

  add(program, "uncordon", async (session, args) =>
    (await import("#cli/commands/cordon.ts")).uncordonByName(session, args[0] ?? ""),
  )
    .description("End the cordon of a cluster. It gets what it waited for in its turn.")
    .addArgument(new Argument("<cluster>", "name of the cluster"));
}

function clusterCommands(program: Command, add: AddCommand): void {
  const cluster = program
    .command("cluster")
    .description("Register clusters, check the access to them, and accept rebuilt ones.");
  add(cluster, "accept", async (session, args, options: AcceptOptions) =>
    (await import("#cli/commands/cluster-accept.ts")).clusterAccept(session, args[0] ?? "", options),
  )
    .description(
      "Accept a rebuilt cluster under the name of the one before. Its Syncs are applied again from the start.",
    )
    .addArgument(new Argument("<name>"))
    .option("--uid <uid>", "UID of its kube-system namespace (default: the UID that was seen last)");

  add(cluster, "add", async (session, args, options: AddOptions) =>
    (await import("#cli/commands/cluster-add.ts")).clusterAdd(session, args, options),
  )
    .description(
      "Register EKS clusters, and print the commands that remain for their accounts. -o yaml prints the documents.",
    )
    .addArgument(new Argument("[arns...]", "ARNs of EKS clusters"))
    .option("-l, --selector <tags>", "clusters that have all of these tags in EKS: env=prod,team=web")
    .option("--account <ids>", "with -l: only in these accounts, separated by commas")
    .option("--regions <names>", "with -l: only in these regions, separated by commas (default: AWS_REGION)")
    .option("--assume-role <name>", "role to assume in the account of each cluster, to read and enter it")
    .option(
      "--name <template>",
      "template of the Clusters' names; may use {{ eks.accountId }} and {{ eks.region }}",
      "{{ eks.name }}",
    )
    .option("--label <key=value>", "label of the Clusters; may be repeated", repeated, [])
    .option(
      "--role <name>",
      "spec.access.role.name of all Clusters (default: INSTALLATION/clusters/NAME, in other accounts only)",
    )
    .option("--zone <name>", "zone whose workers reach all Clusters (default: the zone that each has, or home)")
    .option(
      "--apply-role <arn>",
      "role that the clusters let in (default: output ApplyRole of the context's stack, or that of the zone)",
    )
    .option("--group <name>", "Kubernetes group of Starling", "starling")
    .option("--grant", "also create the access entries and the RBAC objects, with your own rights")
    .option("--dry-run", "check against the API, and write nothing");
  add(cluster, "rbac", async (session, _args, options: AddOptions) =>
    (await import("#cli/commands/cluster-add.ts")).clusterRbac(session, options),
  )
    .description("Print the RBAC objects of Starling's group, for kubectl apply --server-side -f -.")
    .option("--group <name>", "Kubernetes group of the access entry", "starling");
  add(cluster, "check", async (session, args, options: CheckOptions) =>
    (await import("#cli/commands/cluster-check.ts")).clusterCheck(session, args, options),
  )
    .description("Check Starling's access to clusters step by step, and print what is broken and how to repair it.")
    .addArgument(new Argument("[names...]", "check only these clusters"))
    .option("-l, --selector <labels>", "only clusters with these labels: env=prod,ring in (a,b),!legacy")
    .option("--all", "check every cluster")
    .option("--as-me", "if a role refuses Starling: also read its trust policy, with your own rights")
    .option("--assume-role <name>", "with --as-me: role to assume in the account of each cluster");
}

function zoneCommands(program: Command, add: AddCommand): void {
  const zone = program.command("zone").description("Act on zones, from which clusters are reached.");
  add(zone, "check", async (session, args, options: ZoneCheckOptions) =>
    (await import("#cli/commands/zone-check.ts")).zoneCheck(session, args[0] ?? "", options),
  )
    .description(
      "Check how the workers of a zone reach AWS and one of its clusters, and list its endpoints with their monthly cost.",
    )
    .addArgument(new Argument("<zone>", "name of the zone, such as home"))
    .option("--cluster <name>", "go on to this cluster of the zone (default: its first)");
}

function receiverCommands(program: Command, add: AddCommand): void {
  const receiver = program.command("receiver").description("Act on Receivers, which wake Sources.");
  add(receiver, "trigger", async (session, args) =>
    (await import("#cli/commands/receiver-trigger.ts")).triggerByName(session, args[0] ?? ""),
  )
    .description("Poll the Sources of a Receiver now, as if a sender had named them all.")
    .addArgument(new Argument("<receiver>", "name of the Receiver"));
}

function recoverCommand(program: Command, add: AddCommand): void {
  add(program, "recover", async (session, args, options: RecoverOptions) =>
    (await import("#cli/commands/recover.ts")).recover(session, args, options),
  )
    .description(
      "Recover after the table was restored or lost: read the inventories that the clusters keep, and sync again.",
    )
    .addArgument(new Argument("[clusters...]", "recover only these clusters"))
    .option("--all", "recover every cluster")
    .option("--dry-run", "only compare the rows with the inventories in the clusters")
    .option("--from <owner>", "take over the objects of this installation, or Sync uid, that no longer exists");
}

function runCommands(program: Command, add: AddCommand): void {
  add(program, "init", async (session, args, options: InitOptions) =>
    options.local === true
      ? (await import("#cli/commands/local-fleet.ts")).initLocal(session, args[0], options)
      : (await import("#cli/commands/init.ts")).init(session, args[0], options),
  )
    .description("Write the documents of an example fleet. Existing files are not overwritten.")
    .addArgument(new Argument("[folder]", "folder to write to").default("starling"))
    .option("--source <url>", "git repository to roll out")
    .option("--path <folder>", "folder of the repository with the manifests")
    .option("--local", "write documents for the repository and the clusters of `starling local up`")
    .option("--state <folder>", "with --local: folder that keeps the data of the machine");

  const context = program
    .command("context")
    .description("List, choose, add and remove contexts. A context is an installation.");
  add(context, "list", async (session) => (await import("#cli/commands/context.ts")).contextList(session)).description(
    "List the contexts of the context file. * marks the current one.",
  );
  add(context, "use", async (session, args) =>
    (await import("#cli/commands/context.ts")).contextUse(session, args[0] ?? ""),
  )
    .description("Choose the current context.")
    .addArgument(new Argument("<name>"));

  add(context, "add", async (session, args, options: ContextAddOptions) =>
    (await import("#cli/commands/context-add.ts")).contextAdd(session, args[0] ?? "", options),
  )
    .description("Add a context for an installation, and make it current. It keeps --profile, --region and -n.")
    .addArgument(new Argument("<name>"))
    .option("--stack <name>", "control stack; its outputs have the address of the API: starling-control")
    .option("--url <url>", "address of the API instead of --stack: output ApiUrl of the control stack")
    .option("--role <arn>", "role to assume for signing requests");
  add(context, "show", async (session, args) =>
    (await import("#cli/commands/context.ts")).contextShow(session, args[0]),
  )
    .description("Show a context without its keys.")
    .addArgument(new Argument("[name]", "name of the context (default: the current one)"));
  add(context, "remove", async (session, args) =>
    (await import("#cli/commands/context.ts")).contextRemove(session, args[0] ?? ""),
  )
    .description("Remove a context from the context file. The installation does not change.")
    .addArgument(new Argument("<name>"));

  add<UiOptions>(program, "ui", async (session, _args, options) =>
    (await import("#cli/commands/ui.ts")).ui(session, options),
  )
    .description("Serve web pages of the fleet on this machine, with your own rights. Ctrl-C stops it.")
    .option("--port <n>", "port of the pages (default: a free port)", wholeNumber);
  add(program, "whoami", async (session) => (await import("#cli/commands/whoami.ts")).whoami(session)).description(
    "Show the principal that the installation sees for your requests.",
  );

  add(program, "doctor", async (session) => (await import("#cli/commands/doctor.ts")).doctor(session)).description(
    "Check everything that this command needs from an installation. Exit 1 when a check fails.",
  );

  localCommands(program, add);

  add(program, "version", async (session) => (await import("#cli/commands/version.ts")).version(session)).description(
    "Print the version of this command.",
  );

  add(program, "completion", async (session, args) =>
    (await import("#cli/commands/completion.ts")).completion(session, args[0] ?? ""),
  )
    .description("Print a completion script: source <(starling completion bash), or starling completion fish | source")
    .addArgument(new Argument("<shell>").choices(["bash", "zsh", "fish"]));

  add(program, "complete", async (session, args) =>
    (await import("#cli/commands/complete.ts")).complete(session, args, program),
  )
    .description("Print the words that may follow, for the completion scripts.")
    .addArgument(new Argument("[words...]"));
}

/** The words that people type for a command: `starling local up`. */
function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}
