import type { ClusterFaults, ClusterHost } from "@starling/embedded-apiserver";
import type { FaultProxy } from "#local/aws/proxy/fault-proxy.ts";
import { type FaultOptions, quiet } from "#local/aws/wire/fault-options.ts";
import { LocalFailure } from "#local/base/local-failure.ts";
import { awsSettings, awsWords, withAwsSettings } from "#local/faults/aws-fault-settings.ts";
import {
  clusterKnobs,
  clusterSettings,
  concernsConnections,
  withClusterSettings,
} from "#local/faults/cluster-fault-settings.ts";
import { nearestName } from "#shared/base/nearest-name.ts";

/** The faults of one target. */
export interface TargetFaults {
  /** Either `aws` or `clusters/NAME`. */
  readonly target: string;
  /** The seed of all random choices. The same calls in the same order meet the same faults. */
  readonly seed: number;
  /** The settings that turn no faults into these faults. */
  readonly settings: readonly string[];
  /** The number of injections of each fault since the start, for AWS only. */
  readonly injected?: Readonly<Record<string, number>>;
}

export interface FaultChange {
  readonly target: string;
  readonly settings: readonly string[];
  /** Restarts the random sequence. By default the sequence continues. */
  readonly seed?: number;
}

/** Reads and changes the faults of a running machine. They end with the machine. */
export interface FaultControl {
  list(): readonly TargetFaults[];
  /** @throws LocalFailure for an unknown target, an unknown fault or a wrong value. */
  set(change: FaultChange): Promise<TargetFaults>;
  /** Ends the faults of one target, or of all targets. @throws LocalFailure for an unknown target. */
  clear(target?: string): Promise<readonly TargetFaults[]>;
}

export interface FaultControlOptions {
  readonly proxy: Pick<FaultProxy, "setFaults" | "injected">;
  readonly clusters: Pick<ClusterHost, "connections" | "faults" | "setFaults">;
  /** The faults at the start of the machine. */
  readonly faults: FaultOptions;
  readonly seed: number;
  /** Opens a port of its own for a cluster, and updates every user of its address. */
  readonly openPort: (cluster: string) => Promise<void>;
}

const awsTarget = "aws";
const prefix = "clusters/";
const maxNamed = 10;

export function createFaultControl(options: FaultControlOptions): FaultControl {
  const { proxy, clusters } = options;
  let aws = { faults: options.faults, seed: options.seed };

  const names = () => clusters.connections().map(({ name }) => name);

  function awsFaults(): TargetFaults {
    const { faults, seed } = aws;
    return { target: awsTarget, seed, settings: awsSettings(faults), injected: proxy.injected() };
  }

  function clusterFaults(name: string): TargetFaults {
    const { seed = 1, ...faults } = clusters.faults(name);
    return { target: `${prefix}${name}`, seed, settings: clusterSettings(faults) };
  }

  function setAws(faults: FaultOptions, seed: number | undefined): TargetFaults {
    aws = { faults, seed: seed ?? aws.seed };
    proxy.setFaults(faults, seed);
    return awsFaults();
  }

  async function setCluster(name: string, faults: ClusterFaults): Promise<TargetFaults> {
    if (concernsConnections(faults)) await options.openPort(name);
    await clusters.setFaults(name, faults);
    return clusterFaults(name);
  }

  /** The cluster name of a target; undefined for AWS. */
  function clusterOf(target: string): string | undefined {
    if (target === awsTarget) return undefined;
    const name = target.replace(/^clusters?\//, "");
    const known = names();
    if (name !== target && known.includes(name)) return name;
    throw unknownTarget(target, known);
  }

  return {
    list: () => [awsFaults(), ...names().map(clusterFaults)],
    async set({ target, settings, seed }) {
      const name = clusterOf(target);
      if (settings.length === 0 && seed === undefined) throw nothingToSet(target, name === undefined);
      if (name === undefined) return setAws(withAwsSettings(aws.faults, settings), seed);
      const next = withClusterSettings(clusters.faults(name), { target: `${prefix}${name}`, settings });
      return setCluster(name, seed === undefined ? next : { ...next, seed });
    },
    async clear(target) {
      const name = target === undefined ? undefined : clusterOf(target);
      if (name !== undefined) return [await setCluster(name, {})];
      const cleared = [setAws(quiet, undefined)];
      if (target !== undefined) return cleared;
      return [...cleared, ...(await Promise.all(names().map((each) => setCluster(each, {}))))];
    },
  };
}

function unknownTarget(target: string, names: readonly string[]): LocalFailure {
  const known = [awsTarget, ...names.map((name) => `${prefix}${name}`)];
  const nearCluster = nearestName(target.replace(/^clusters?\//, ""), names);
  const near = nearestName(target, [awsTarget]) ?? (nearCluster === undefined ? undefined : `${prefix}${nearCluster}`);
  const more = known.length > maxNamed ? ` and ${known.length - maxNamed} more` : "";
  const list = `${known.slice(0, maxNamed).join(", ")}${more}`;
  const remark = names.length === 0 ? "; only embedded clusters have faults" : "";
  const message = `unknown target "${target}"${near === undefined ? "" : ` (did you mean ${near}?)`}; the targets are ${list}${remark}`;
  return new LocalFailure(message, {
    exit: "wrongInput",
    next: `starling local faults set ${near ?? awsTarget} NAME=VALUE`,
  });
}

function nothingToSet(target: string, isAws: boolean): LocalFailure {
  const words = isAws ? awsWords : clusterKnobs;
  return new LocalFailure(`no fault is given for ${target}; expected ${words.join(", ")}`, {
    exit: "wrongInput",
    next: `starling local faults set ${target} ${isAws ? "hostile --seed 7" : "latency=500ms"}`,
  });
}
