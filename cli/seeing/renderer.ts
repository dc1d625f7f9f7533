/** The renderings of a fleet: the stored ones, and new ones that are made here with the same code. */
import type { FleetView } from "#cli/seeing/fleet-view.ts";
import { lost, renderingLinks, type StoredRendering, storedArtifact } from "#cli/seeing/stored-files.ts";
import type { Session } from "#cli/session/session.ts";
import { HttpTransfer } from "#shared/adapters/net/http-transfer.ts";
import { locateHelm } from "#shared/adapters/render/helm-binary.ts";
import { HelmTemplate } from "#shared/adapters/render/helm-template.ts";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { KubectlKustomize } from "#shared/adapters/render/kubectl-kustomize.ts";
import { type Renderers, renderObjects } from "#shared/adapters/render/render-objects.ts";
import { defined } from "#shared/base/defined.ts";
import { sha256 } from "#shared/base/digest.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import type { DistinctInput } from "#shared/fleet/forecast/desired-clusters.ts";
import type { ValuesFiles } from "#shared/fleet/forecast/origins.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import type { ApplyEvent } from "#shared/kube/order-marks.ts";
import type { TreeFile } from "#shared/ports.ts";
import { valueArtifacts } from "#shared/source/helm/helm-release.ts";
import { decodeRendering, encodeRendering } from "#shared/source/rendering.ts";
import { normalFolder } from "#shared/source/tree-listing.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

export interface ReadRendering {
  /** `sha256:<hex>` of the stored bytes. */
  readonly digest: string;
  /** Both are the same list if an install has the objects of an upgrade. */
  readonly objects: Readonly<Record<ApplyEvent, readonly ManifestObject[]>>;
  readonly leftOut: readonly string[];
}

/** The API reads this many Syncs in one request. Several Syncs are named for each rendering, because a rollout may replace some meanwhile. */
const syncsAtOnce = 100;
const syncsOfEach = 4;
const transfersAtOnce = 8;
/** Each kubectl or helm process uses a whole processor. */
const rendersAtOnce = 4;

type RenderedView = Pick<FleetView, "owner" | "local" | "plan" | "clusters">;

export class Renderer {
  readonly #session: Session;
  readonly #view: RenderedView;
  readonly #renderers: Renderers;
  readonly #transfer = new HttpTransfer();
  readonly #artifacts = new Map<string, Promise<readonly TreeFile[]>>();
  readonly #stored = new Map<string, ReadRendering>();
  readonly #made = new Map<string, ReadRendering>();

  constructor(session: Session, view: RenderedView) {
    const path = session.io.env.PATH ?? "";
    this.#session = session;
    this.#view = view;
    this.#renderers = {
      kustomize: new KubectlKustomize({ kubectl: () => locateKubectl(path) }),
      helm: new HelmTemplate({ helm: () => locateHelm(path) }),
    };
  }

  /** Renderings that were made here, by their own digests. */
  known(): ReadonlyMap<string, ReadRendering> {
    return new Map([...this.#made.values()].map((rendering) => [rendering.digest, rendering]));
  }

  /** Whether the rendering was made here, not read from the store. */
  isMade(rendering: ReadRendering): boolean {
    return this.#stored.get(rendering.digest) !== rendering;
  }

  /** Stored renderings, by digest. @throws CliFailure when one cannot be read. */
  async stored(digests: readonly string[]): Promise<ReadonlyMap<string, ReadRendering>> {
    const missing = [...new Set(digests)].filter((digest) => !this.#stored.has(digest));
    const known = missing.length === 0 ? new Map() : whereAssigned(this.#view);
    const places = missing.map((digest) => {
      const all = known.get(digest);
      if (all === undefined) throw lost(`rendering ${digest}`, "no cluster has it");
      return all;
    });
    for (const part of inParts(places, syncsAtOnce / syncsOfEach)) {
      const links = Object.entries(await renderingLinks(this.#session, this.#view.owner, part.flat()));
      await runConcurrently(links, transfersAtOnce, async ([digest, url]) => {
        const bytes = await this.#transfer.download(url);
        if (sha256(bytes) !== digest) throw lost(`rendering ${digest}`, "its bytes have another digest");
        const objects = decodeRendering(new TextDecoder().decode(bytes));
        this.#stored.set(digest, { digest, objects, leftOut: [] });
      });
    }
    return this.#stored;
  }

  /** The renderings of the inputs, by the inputs' digests, and the failures. */
  async made(inputs: readonly DistinctInput[]): Promise<Made> {
    const missing = [...new Map(inputs.map((input) => [input.digest, input])).values()].filter(
      ({ digest }) => !this.#made.has(digest),
    );
    const failures = new Map<string, string>();
    await runConcurrently(missing, rendersAtOnce, async (input) => {
      const { artifactDigest, path, render, specialise } = input.build;
      const files = await this.#files(artifactDigest);
      const others = new Map<string, readonly TreeFile[]>();
      for (const digest of valueArtifacts(render?.helm)) others.set(digest, await this.#files(digest));
      try {
        const request = { files, others, path, ...defined({ render, specialise }) };
        const { objects: install, upgrade, leftOut } = await renderObjects(request, this.#renderers);
        const { digest } = encodeRendering(install, upgrade);
        this.#made.set(input.digest, { digest, objects: { install, upgrade }, leftOut });
      } catch (error) {
        if (!isOfInput(error)) throw error;
        failures.set(input.digest, errorMessage(error));
      }
    });
    return { renderings: this.#made, failures };
  }

  /** The contents of the files of `valuesFrom`, by index. */
  async valuesFiles({ build }: Pick<DistinctInput, "build">): Promise<ValuesFiles> {
    const said = new Map<number, unknown>();
    for (const [index, { path, from }] of (build.render?.helm?.valuesFrom ?? []).entries()) {
      const files = await this.#files(from?.artifactDigest ?? build.artifactDigest);
      const file = files.find((one) => one.path === normalFolder(path));
      if (file === undefined) continue;
      said.set(index, parseDocuments(new TextDecoder().decode(file.content), path)[0]?.value ?? {});
    }
    return said;
  }

  #files(digest: string): Promise<readonly TreeFile[]> {
    const local = this.#view.local.get(digest);
    if (local !== undefined) return Promise.resolve(local.files);
    const known = this.#artifacts.get(digest) ?? this.#storedArtifact(digest);
    this.#artifacts.set(digest, known);
    return known;
  }

  async #storedArtifact(digest: string): Promise<readonly TreeFile[]> {
    const pins = this.#view.plan.templates.flatMap(({ besides = [], ...own }) => [own, ...besides]);
    const pin = pins.find(({ artifactDigest }) => artifactDigest === digest);
    if (pin === undefined) throw lost(`artifact ${digest}`, "no template uses it");
    const { namespace } = this.#view.owner;
    return storedArtifact(this.#session, { namespace, name: pin.source }, digest);
  }
}

/** For each digest some of the Syncs that it was assigned to, spread over the fleet. */
function whereAssigned({ clusters }: Pick<FleetView, "clusters">): ReadonlyMap<string, readonly StoredRendering[]> {
  const all = clusters.flatMap(({ name: cluster, syncs }) =>
    syncs.flatMap(({ name: sync, renderDigest: digest }) => (digest === undefined ? [] : [{ digest, cluster, sync }])),
  );
  const places = Map.groupBy(all, ({ digest }) => digest);
  return new Map([...places].map(([digest, found]) => [digest, spread(found, syncsOfEach)]));
}

/** The first, the last, and some between them. */
function spread<Item>(items: readonly Item[], most: number): readonly Item[] {
  const step = Math.max(1, (items.length - 1) / (most - 1));
  const chosen = Array.from({ length: Math.min(most, items.length) }, (_, index) => items[Math.round(index * step)]);
  return chosen.flatMap((item) => item ?? []);
}

/** Whether an install has other objects than an upgrade. */
export function isApart({ objects }: Pick<ReadRendering, "objects">): boolean {
  return objects.install !== objects.upgrade;
}

/** Errors of this machine, not of the input. */
const ofThisMachine: ReadonlySet<string> = new Set(["KubectlNotFound", "HelmNotFound"]);

function isOfInput(error: unknown): boolean {
  if (error instanceof ManifestError) return true;
  return error instanceof StarlingError && error.retry === "permanent" && !ofThisMachine.has(error.code);
}

export interface Made {
  readonly renderings: ReadonlyMap<string, ReadRendering>;
  /** Messages by digest of the input. */
  readonly failures: ReadonlyMap<string, string>;
}
