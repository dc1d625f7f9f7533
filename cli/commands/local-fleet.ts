/** The Source and the SyncGroup of a repository on this machine. `local up` creates them, and `init --local` writes them. */
import { basename, join } from "node:path";
import { type InitOptions, writeDocuments } from "#cli/commands/init.ts";
import { type LocalOptions, machineApi, runningMachine, stateFlag, stateFolder } from "#cli/commands/local-folder.ts";
import { manifestYaml } from "#cli/output/manifest-yaml.ts";
import { CliFailure, type ExitReason, usageFailure } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";
import { type FolderShape, type ShapeCluster, shapeOf } from "#local/git/folder-shape.ts";
import { foreignManifests } from "#local/git/foreign-manifests.ts";
import { repositoryFolder } from "#local/git/repository.ts";
import { repositoryPaths } from "#local/git/repository-paths.ts";
import { findRepository, isSameRepository, type UserRepository } from "#local/git/user-repository.ts";
import { ApiAnswer, type ApiSession } from "#local/machine/api-session.ts";
import { fleetDocuments } from "#local/machine/fleet-documents.ts";
import { expectedClusters } from "#local/serve/expected-clusters.ts";
import type { MachineFile } from "#local/serve/machine-file.ts";
import { type ClusterChoice, defaultClusters } from "#local/serve/state-folder.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { nameSchema } from "#shared/base/name-schema.ts";
import { quoted } from "#shared/base/shell-word.ts";
import type { SourceObject, SyncGroupObject } from "#shared/fleet/api/objects.ts";

/** The namespace of a machine's context. */
const localNamespace = "default";

export interface FleetFlags {
  /** The folder of the repository. If it is given, the documents are created. */
  readonly path?: string;
  readonly ref?: string;
}

/** The documents that will be created, found before anything is written. */
export interface LocalFleet {
  readonly name: string;
  readonly ref: UserRepository["ref"];
  readonly shape: FolderShape;
  readonly clusters: readonly ShapeCluster[];
  /** Manifests for other tools: `Application for Argo CD`. */
  readonly theirs: readonly string[];
}

export interface FleetQuestion extends FleetFlags {
  /** State folder of the machine. */
  readonly folder: string;
  /** The value of `--repo`. */
  readonly repo: string | undefined;
  /** URL of the repository that the machine has from an earlier start. */
  readonly known: string | undefined;
  /** Absent: the clusters of a first start. */
  readonly choice: ClusterChoice | undefined;
}

/**
 * Reads the repository that will be served. If the machine has a copy that was pushed to, it reads the copy.
 * @returns undefined when no documents are requested.
 * @throws CliFailure that names the wrong flag, and the value to use.
 */
export async function readFleetFile(question: FleetQuestion): Promise<LocalFleet | undefined> {
  const { folder, repo, known, path, ref } = question;
  const isRequested = path !== undefined || ref !== undefined;
  const isKnown = known !== undefined && (repo === undefined || isSameRepository(known, repo));
  const place = isKnown ? servedFolder(folder, known) : repo;
  const next = `starling local up --repo ${repo === undefined ? "FOLDER" : quoted(repo)} --path FOLDER`;
  if (place === undefined) {
    if (!isRequested) return undefined;
    throw usageFailure(
      `${path === undefined ? "--ref" : "--path"} needs a repository, and the machine has none yet`,
      next,
    );
  }
  if (isKnown && !isRequested) return undefined;
  try {
    const found = await findRepository({ repo: place, ...defined({ ref }) });
    if (!isRequested) return undefined;
    const clusters = expectedClusters(question.choice ?? defaultClusters);
    const paths = await repositoryPaths(found);
    const where = `commit ${found.commit.slice(0, 12)} of ${repo ?? known}`;
    const shape = shapeOf({ paths, folder: path ?? ".", clusters, where });
    const theirs = await foreignManifests(found, shape.path);
    return { name: documentName(place), ref: found.ref, shape, clusters, theirs };
  } catch (error) {
    throw usageFailure(errorMessage(error), next);
  }
}

/** The folder of a repository of this machine, or the URL of a remote one. */
function servedFolder(folder: string, url: string): string {
  const { hostname, pathname } = new URL(url);
  if (hostname !== "127.0.0.1") return url;
  return repositoryFolder(join(folder, "repositories"), decodeURIComponent(pathname.slice(1)).replace(/\.git$/, ""));
}

function documentName(repo: string): string {
  const name = basename(repo.replace(/\/+$/, ""))
    .replace(/\.git$/, "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .slice(0, 63)
    .replaceAll(/^-+|-+$/g, "");
  return nameSchema.safeParse(name).success ? name : "app";
}

/** Creates the Source and the SyncGroup unless they exist, so that changes to them are kept. */
export async function makeFleet(session: Session, machine: MachineFile, fleet: LocalFleet): Promise<void> {
  const { name, shape } = fleet;
  const { source, group } = documentsOf(machine, { ...fleet, namespace: localNamespace });
  const api = machineApi(session, machine);
  const [hasSource, hasGroup] = [await read<SourceObject>(api, "sources", name), await groupOf(api, fleet)];
  const missing = [...(hasSource === undefined ? [source] : []), ...(hasGroup === undefined ? [group] : [])];
  try {
    if (missing.length > 0) await api.apply(missing);
  } catch (error) {
    if (!(error instanceof ApiAnswer)) throw error;
    throw new CliFailure(`source/${name} and syncgroup/${name} were not created: ${error.text}`, {
      exit: "wrongInput",
      next: `starling init --local${stateFlag(session, machine.folder)}   (writes them as files, to change and apply)`,
    });
  }
  const became = (present: unknown) => (present === undefined ? "created" : "exists, and is not changed");
  session.note(`source/${name} ${became(hasSource)}`);
  session.note(`syncgroup/${name} ${became(hasGroup)}: ${shape.path}, ${shape.description}`);
  noteTheirs(session, fleet);
  session.note(`  next: starling rollout status ${name} -w`);
}

/** Warns of manifests for other tools, which the machine's clusters do not have. */
function noteTheirs(session: Session, { shape, theirs }: LocalFleet): void {
  if (theirs.length === 0) return;
  session.note(`warning: ${shape.path} has ${theirs.join(", ")}; clusters without that tool refuse these kinds`);
  session.note("  next: starling validate -f FILE   (prints the same as documents of Starling)");
}

/** @throws CliFailure when the group exists for another folder. */
async function groupOf(api: ApiSession, { name, shape }: LocalFleet): Promise<SyncGroupObject | undefined> {
  const group = await read<SyncGroupObject>(api, "syncgroups", name);
  const has = group?.spec?.templates[0]?.path;
  if (has === undefined || has === shape.path) return group;
  throw usageFailure(
    `--path is ${shape.path}, but syncgroup/${name} has ${has}`,
    `starling delete sg/${name}   (or change it: starling get sg ${name} -o yaml)`,
  );
}

async function read<T>(api: ApiSession, kind: "sources" | "syncgroups", name: string): Promise<T | undefined> {
  try {
    return await api.call<T>("GET", `/v1/namespaces/${localNamespace}/${kind}/${name}`);
  } catch (error) {
    if (error instanceof ApiAnswer && error.status === 404) return undefined;
    throw error;
  }
}

function documentsOf({ repository }: MachineFile, fleet: LocalFleet & { readonly namespace: string }) {
  if (repository === undefined) throw new Error("the machine has no repository");
  const { url, credentials } = repository;
  return fleetDocuments({ ...fleet, git: { url, ...defined({ credentials }) } });
}

export interface InitLocalOptions extends InitOptions, LocalOptions {}

/** Writes the documents that `local up --path` creates, for the clusters of the running machine. */
export async function initLocal(
  session: Session,
  folder: string | undefined,
  options: InitLocalOptions,
): Promise<ExitReason> {
  const machine = runningMachine(session, stateFolder(session, options));
  const flag = stateFlag(session, machine.folder);
  if (options.source !== undefined) {
    const next = `starling local down${flag}; starling local up${flag} --repo ${quoted(options.source)}`;
    throw usageFailure("--source does not go with --local: it uses the repository that the machine serves", next);
  }
  const known = machine.repository?.url;
  if (known === undefined) {
    const next = `starling local down${flag}; starling local up${flag} --repo FOLDER`;
    throw new CliFailure("the machine has no repository yet", { exit: "no", next });
  }
  const { folder: state, kept: choice } = machine;
  const path = options.path ?? ".";
  const fleet = await readFleetFile({ folder: state, repo: undefined, known, choice, path });
  if (fleet === undefined) throw new Error("a fleet that is asked for is found or refused");
  const { source, group } = documentsOf(machine, { ...fleet, namespace: session.options.namespace ?? localNamespace });
  noteTheirs(session, fleet);
  const shown = writeDocuments(
    session,
    folder,
    new Map([
      ["source.yaml", `# What to roll out: the repository that this machine serves.\n${manifestYaml(source)}`],
      [
        "sync-group.yaml",
        `# How to roll it out: ${fleet.shape.description}, on every cluster.\n${manifestYaml(group)}`,
      ],
    ]),
  );
  session.note(`
Next:
  1. starling validate -f ${shown}
  2. starling apply -f ${shown}
  3. starling rollout status ${fleet.name} -w`);
  return "done";
}
