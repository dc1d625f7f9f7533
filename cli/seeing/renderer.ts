/** Renderings as a fleet has them: those that are stored, and others made here with the same code. */
import type { FleetView } from "#cli/seeing/fleet-view.ts";
import { CliFailure } from "#cli/session/failure.ts";
import { objectPath } from "#cli/session/kind-names.ts";
import type { Session } from "#cli/session/session.ts";
import { HttpTransfer } from "#shared/adapters/net/http-transfer.ts";
import { unpackArtifact } from "#shared/adapters/render/artifact-archive.ts";
import { locateHelm } from "#shared/adapters/render/helm-binary.ts";
import { HelmTemplate } from "#shared/adapters/render/helm-template.ts";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { KubectlKustomize } from "#shared/adapters/render/kubectl-kustomize.ts";
import { type Renderers, renderObjects } from "#shared/adapters/render/render-objects.ts";
import { defined } from "#shared/base/defined.ts";
import { sha256 } from "#shared/base/digest.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { parseJson } from "#shared/base/json.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import type { DistinctInput } from "#shared/fleet/forecast/wanted-clusters.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import type { TreeFile } from "#shared/ports.ts";
import { encodeRendering } from "#shared/source/rendering.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

export interface Rendering {
  /** `sha256:<hex>` of the bytes as they are stored. */
  readonly digest: string;
  readonly objects: readonly ManifestObject[];
  readonly leftOut: readonly string[];
}

/** The API links so many at once. */
const linksAtOnce = 100;
const transfersAtOnce = 8;
/** kubectl and helm are processes that take a processor each. */
const rendersAtOnce = 4;

type Kind = "renderings" | "artifacts";

export class Renderer {
  readonly #session: Session;
  readonly #view: Pick<FleetView, "subject" | "local">;
  readonly #renderers: Renderers;
  readonly #transfer = new HttpTransfer();
  readonly #artifacts = new Map<string, Promise<readonly TreeFile[]>>();
  readonly #stored = new Map<string, Rendering>();
  readonly #made = new Map<string, Rendering>();

  constructor(session: Session, view: Pick<FleetView, "subject" | "local">) {
    const path = session.io.env.PATH ?? "";
    this.#session = session;
    this.#view = view;
    this.#renderers = {
      kustomize: new KubectlKustomize({ kubectl: () => locateKubectl(path) }),
      helm: new HelmTemplate({ helm: () => locateHelm(path) }),
    };
  }

  /** Those that were made here, by their own digests. */
  known(): ReadonlyMap<string, Rendering> {
    return new Map([...this.#made.values()].map((rendering) => [rendering.digest, rendering]));
  }

  /** Those that were stored, by digest. @throws CliFailure when one is not to be had. */
  async stored(digests: readonly string[]): Promise<ReadonlyMap<string, Rendering>> {
    const missing = [...new Set(digests)].filter((digest) => !this.#stored.has(digest));
    for (const part of inParts(missing, linksAtOnce)) {
      const links = Object.entries(await this.#links("renderings", part));
      await runConcurrently(links, transfersAtOnce, async ([digest, url]) => {
        const bytes = await this.#transfer.download(url);
        if (sha256(bytes) !== digest) throw lost(`rendering ${digest}`, "its bytes are others");
        const objects = parseJson(new TextDecoder().decode(bytes)) as unknown as readonly ManifestObject[];
        this.#stored.set(digest, { digest, objects, leftOut: [] });
      });
    }
    return this.#stored;
  }

  /** What the inputs come to, by their digests, and why some come to nothing. */
  async made(inputs: readonly DistinctInput[]): Promise<Made> {
    const missing = [...new Map(inputs.map((input) => [input.digest, input])).values()].filter(
      ({ digest }) => !this.#made.has(digest),
    );
    const failures = new Map<string, string>();
    await runConcurrently(missing, rendersAtOnce, async (input) => {
      const { artifactDigest, path, render, specialise } = input.build;
      const files = await this.#files(artifactDigest);
      try {
        const request = { files, path, ...defined({ render, specialise }) };
        const { objects, leftOut } = await renderObjects(request, this.#renderers);
        this.#made.set(input.digest, { digest: encodeRendering(objects).digest, objects, leftOut });
      } catch (error) {
        if (!isOfInput(error)) throw error;
        failures.set(input.digest, errorMessage(error));
      }
    });
    return { renderings: this.#made, failures };
  }

  #files(digest: string): Promise<readonly TreeFile[]> {
    const local = this.#view.local.get(digest);
    if (local !== undefined) return Promise.resolve(local.files);
    const known = this.#artifacts.get(digest) ?? this.#fetched(digest);
    this.#artifacts.set(digest, known);
    return known;
  }

  async #fetched(digest: string): Promise<readonly TreeFile[]> {
    const { [digest]: url } = await this.#links("artifacts", [digest]);
    if (url === undefined) throw lost(`artifact ${digest}`, "nobody says where it is");
    return unpackArtifact(await this.#transfer.download(url), digest);
  }

  async #links(kind: Kind, digests: readonly string[]): Promise<Readonly<Record<string, string>>> {
    const { kind: of, namespace, name } = this.#view.subject;
    const path = `${objectPath({ kind: of, name }, namespace)}/contents`;
    const answer = await this.#session.api.call<Readonly<Record<Kind, Record<string, string>>>>({
      method: "POST",
      path,
      body: { [kind]: digests },
    });
    return answer[kind];
  }
}

/** What a machine lacks says nothing of what is rendered on it. */
const ofThisMachine: ReadonlySet<string> = new Set(["KubectlNotFound", "HelmNotFound"]);

function isOfInput(error: unknown): boolean {
  if (error instanceof ManifestError) return true;
  return error instanceof StarlingError && error.retry === "permanent" && !ofThisMachine.has(error.code);
}

export interface Made {
  readonly renderings: ReadonlyMap<string, Rendering>;
  /** By digest of the input, in words. */
  readonly failures: ReadonlyMap<string, string>;
}

function lost(what: string, why: string): CliFailure {
  return new CliFailure(`${what} is not to be had: ${why}`, { exit: "unknown", next: "try the same command again" });
}
