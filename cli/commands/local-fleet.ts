/** What a repository becomes on this machine: its Source and its SyncGroup, made by `local up` or written by `init --local`. */
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
  /** The folder of the repository; given, its documents are made. */
  readonly path?: string;
  readonly ref?: string;
}

/** What will be made, looked at before anything is. */
export interface LocalFleet {
  readonly name: string;
  readonly ref: UserRepository["ref"];
  readonly shape: FolderShape;
  readonly clusters: readonly ShapeCluster[];
  /** What of it is for another tool: `Application for Argo CD`. */
  readonly theirs: readonly string[];
}

export interface FleetQuestion extends FleetFlags {
  /** State folder of the machine. */
  readonly folder: string;
  /** As `--repo` says. */
  readonly repo: string | undefined;
  /** URL of the repository that the machine has from an earlier start. */
  readonly known: string | undefined;
  /** Absent: those of a first start. */
  readonly choice: ClusterChoice | undefined;
}

/**
 * Looks at the repository as it will be served: what was copied once, and pushed to since, is looked at in its place.
 * @returns undefined where no documents are asked for.
 * @throws CliFailure naming the flag that is wrong, and what to give instead.
 */
export async function readFleetFile(question: FleetQuestion): Promise<LocalFleet | undefined> {
  const { folder, repo, known, path, ref } = question;
  const isWanted = path !== undefined || ref !== undefined;
  const isKnown = known !== undefined && (repo === undefined || isSameRepository(known, repo));
  const place = isKnown ? servedFolder(folder, known) : repo;
  const next = `starling local up --repo ${repo === undefined ? "FOLDER" : quoted(repo)} --path FOLDER`;
  if (place === undefined) {
    if (!isWanted) return undefined;
    throw usageFailure(`${path === undefined ? "--ref" : "--path"} is of a repository, and there is none yet`, next);
  }
  if (isKnown && !isWanted) return undefined;
  try {
    const found = await findRepository({ repo: place, ...defined({ ref }) });
    if (!isWanted) return undefined;
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

/** Where a repository of this machine is kept; one far away is where its URL says. */
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

/** Makes the Source and the SyncGroup, unless they are there: what somebody changed since stays changed. */
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
    throw new CliFailure(`source/${name} and syncgroup/${name} were not made: ${error.text}`, {
      exit: "wrongInput",
      next: `starling init --local${stateFlag(session, machine.folder)}   (writes them, to be changed and applied)`,
    });
  }
  const became = (present: unknown) => (present === undefined ? "made" : "there already, and left as it is");
  session.note(`source/${name} ${became(hasSource)}`);
  session.note(`syncgroup/${name} ${became(hasGroup)}: ${shape.path}, ${shape.description}`);
  noteTheirs(session, fleet);
  session.note(`  next: starling rollout status ${name} -w`);
}

/** Nothing of this machine's clusters acts on them. */
function noteTheirs(session: Session, { shape, theirs }: LocalFleet): void {
  if (theirs.length === 0) return;
  session.note(`warning: ${shape.path} has ${theirs.join(", ")}: clusters without that tool know no such kind`);
  session.note("  next: starling validate -f FILE   (prints the documents of Starling that say the same)");
}

/** @throws CliFailure when there is one of another folder. */
async function groupOf(api: ApiSession, { name, shape }: LocalFleet): Promise<SyncGroupObject | undefined> {
  const group = await read<SyncGroupObject>(api, "syncgroups", name);
  const has = group?.spec?.templates[0]?.path;
  if (has === undefined || has === shape.path) return group;
  throw usageFailure(
    `--path comes to ${shape.path}, and syncgroup/${name} has ${has}`,
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

/** Writes what `local up --path` makes as documents, for the clusters of the machine that is up. */
export async function initLocal(
  session: Session,
  folder: string | undefined,
  options: InitLocalOptions,
): Promise<ExitReason> {
  const machine = runningMachine(session, stateFolder(session, options));
  const flag = stateFlag(session, machine.folder);
  if (options.source !== undefined) {
    const next = `starling local down${flag}; starling local up${flag} --repo ${quoted(options.source)}`;
    throw usageFailure("--source does not go with --local, which takes the repository that is served", next);
  }
  const known = machine.repository?.url;
  if (known === undefined) {
    const next = `starling local down${flag}; starling local up${flag} --repo FOLDER`;
    throw new CliFailure("local has no repository yet, which the documents would be about", { exit: "no", next });
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
      ["sync-group.yaml", `# How: ${fleet.shape.description}, on every cluster.\n${manifestYaml(group)}`],
    ]),
  );
  session.note(`
Next:
  1. starling validate -f ${shown}
  2. starling apply -f ${shown}
  3. starling rollout status ${fleet.name} -w`);
  return "done";
}
