/** The resolve function beside git itself, on the same repositories of one git server. */

import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { runGit } from "#local/git/git-command.ts";
import { repositoryFolder } from "#local/git/repository.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import type { BenchOptions, BenchResult, Figures } from "#test/bench/bench.ts";
import { chartToCluster } from "#test/bench/chart-to-cluster.ts";
import { startGitProcess } from "#test/bench/children.ts";
import { median, medianRatio, spread } from "#test/bench/figures.ts";
import { inTurns } from "#test/bench/in-turns.ts";
import { faultsOf, type Resolved } from "#test/bench/resolved.ts";
import { digestOf, fetchWithGit, folderOf, listWithGit, makeRepository } from "#test/bench/sources.ts";
import { countedTable } from "#test/support/counted-table.ts";
import { SourceWorld } from "#test/support/source-world.ts";

/** The files of the largest repository; the others have a tenth and a hundredth of them. */
const defaultFiles = 200_000;
const defaultRounds = 5;
/** A listing is short, so that more of them are compared. */
const listingsInRound = 4;
/** 20,000 files are 80 MB. */
const bytesOfFile = 4096;
const bytesOfFileOfMany = 200;
const program = fileURLToPath(new URL("resolve-child.ts", import.meta.url));

export async function resolve({
  objects: files = defaultFiles,
  rounds = defaultRounds,
  say,
}: BenchOptions): Promise<BenchResult> {
  const root = await mkdtemp(join(tmpdir(), "starling-bench-"));
  const sizes = { few: Math.ceil(files / 100), many: Math.ceil(files / 10) };
  for (const [name, count] of Object.entries(sizes))
    await makeRepository(root, name, { count, bytesOfEach: bytesOfFile });
  await makeRepository(root, "all", { count: files, bytesOfEach: bytesOfFileOfMany });
  say(`repositories of ${sizes.few}, ${sizes.many} and ${files} files are made`);
  const server = await startGitProcess(root);
  const urlOf = (repository: string) => `${server.address}/${repository}.git`;
  const failures: string[] = [];
  try {
    const listed = await compareListings(urlOf("few"), rounds * listingsInRound);
    say(`listing: ${JSON.stringify(listed.figures)}`);
    const ratios: Record<string, number> = { listVsGit: listed.ratio };
    const figures: Record<string, Figures> = { ...listed.figures };
    for (const [name, count] of Object.entries(sizes)) {
      const fetched = await compareFetches(urlOf(name), { rounds, failures });
      say(`${count} files: ${JSON.stringify(fetched.figures)}`);
      ratios[`fetch${count}VsGit`] = fetched.ratio;
      for (const [who, figure] of Object.entries(fetched.figures)) figures[`${who}, ${count} files`] = figure;
    }
    const path = folderOf(Math.floor(files / 2));
    for (const isFiltered of [true, false]) {
      const folder = repositoryFolder(root, "all");
      await runGit(["-C", folder, "config", "uploadpack.allowFilter", `${isFiltered}`]);
      const found = await resolved(specOf(urlOf("all"), [path]));
      const name = isFiltered ? `a folder of ${files} files` : `a folder of ${files} files, no filter at the server`;
      say(`${name}: ${JSON.stringify(found)}`);
      figures[name] = { ms: Math.round(found.ms), peakRssMiB: found.peakRssMiB, files: found.files };
      if (isFiltered) failures.push(...faultsOf(found, { what: "fetch of a folder", files: Math.min(20, files) }));
    }
    const charts = await chartToCluster({ rounds, say });
    return {
      target: charts.target,
      ratios: { ...ratios, ociToClusterVsGit: charts.ratio },
      figures: { ...figures, ...charts.figures },
      failures,
    };
  } finally {
    await server.stop();
    await rm(root, { recursive: true, force: true });
  }
}

function specOf(url: string, paths: readonly string[] = ["."]) {
  return { git: { url, ref: { branch: "main" } }, paths };
}

interface Compared {
  readonly ratio: number;
  readonly figures: Readonly<Record<string, Figures>>;
}

/** Polls of a Source that has not changed, beside `git ls-remote`. */
async function compareListings(url: string, rounds: number): Promise<Compared> {
  const world = new SourceWorld();
  world.git = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
  await world.put(specOf(url));
  const { status } = await world.resolve();
  if (status.artifact === undefined) throw new Error(`the Source has no artifact: ${JSON.stringify(status)}`);
  const { ours, theirs } = await inTurns(
    rounds,
    () => timeOf(() => world.resolve()),
    () => timeOf(() => listWithGit(url)),
  );
  const { table, counts } = countedTable(world.table);
  world.watch = () => table;
  await world.resolve();
  const { requests, rowsRead, rowsWritten } = counts;
  return {
    ratio: medianRatio(ours, theirs),
    figures: {
      "poll without a change": spread(ours),
      "git ls-remote": spread(theirs),
      "rows of a poll without a change": { requests, rowsRead, rowsWritten },
    },
  };
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

interface Fetching {
  readonly rounds: number;
  readonly failures: string[];
}

/** The first fetch of a Source, packed and stored, beside git's own fetch and archive. */
async function compareFetches(url: string, { rounds, failures }: Fetching): Promise<Compared> {
  const digest = await digestOf((await fetchWithGit(url)).packed);
  const { ours, theirs } = await inTurns(
    rounds,
    () => resolved(specOf(url)),
    async () => (await fetchWithGit(url)).ms,
  );
  for (const each of ours) failures.push(...faultsOf(each, { what: "fetch of a whole repository", digest }));
  const times = ours.map(({ ms }) => ms);
  return {
    ratio: medianRatio(times, theirs),
    figures: {
      starling: { ...spread(times), peakRssMiB: median(ours.map(({ peakRssMiB }) => peakRssMiB)) },
      git: { ...spread(theirs) },
    },
  };
}

/** Resolves in a process of its own, whose memory is that of one fetch. */
async function resolved(spec: unknown): Promise<Resolved> {
  const { stdout } = await promisify(execFile)(process.execPath, [program, JSON.stringify(spec)]);
  return JSON.parse(stdout);
}
