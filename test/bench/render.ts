import { spawn } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type BuildPorts, build } from "#functions/build/build.ts";
import { LastArtifact } from "#functions/build/last-artifact.ts";
import { packArtifact } from "#shared/adapters/render/artifact-archive.ts";
import { locateHelm } from "#shared/adapters/render/helm-binary.ts";
import { HelmTemplate } from "#shared/adapters/render/helm-template.ts";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { KubectlKustomize } from "#shared/adapters/render/kubectl-kustomize.ts";
import type { Transfer } from "#shared/ports.ts";
import { uploadSizes } from "#shared/source/build-job.ts";
import type { BuildOptions } from "#shared/source/render-options.ts";
import { treeDigest } from "#shared/source/tree-listing.ts";
import type { BenchOptions, BenchResult, Figures } from "#test/bench/bench.ts";
import { medianRatio, spread } from "#test/bench/figures.ts";

/** The number of objects in the kustomization. */
const kustomizeObjects = 130;
/** The number of templates in the chart. */
const templates = 60;

interface Contest {
  readonly files: Readonly<Record<string, string>>;
  readonly render: BuildOptions;
  readonly binary: () => Promise<string>;
  /** The arguments of the program, which runs in the folder of the files. */
  readonly args: readonly string[];
  readonly objects: number;
}

const contests: Readonly<Record<"kustomize" | "helm", Contest>> = {
  kustomize: {
    files: kustomization(),
    render: { kustomize: {} },
    binary: () => locateKubectl(""),
    args: ["kustomize", "."],
    objects: kustomizeObjects,
  },
  helm: {
    files: chart(),
    render: {
      helm: { releaseName: "web", namespace: "shop", crds: "CreateReplace", lookup: "Refuse", hooks: "Honor" },
    },
    binary: () => locateHelm(""),
    args: ["template", "web", ".", "--namespace=shop", "--include-crds"],
    objects: templates,
  },
};

/**
 * Compares `build` with the bare program on the same files. `build` unpacks the artifact, reads the inputs, runs the
 * program (twice for a chart) and reads its output.
 */
export async function render({ rounds = 10, say }: BenchOptions): Promise<BenchResult> {
  const ratios: Record<string, number> = {};
  const figures: Record<string, Figures> = {};
  const failures: string[] = [];
  for (const [name, contest] of Object.entries(contests)) {
    const folder = await mkdtemp(join(tmpdir(), "starling-bench-"));
    try {
      const binary = await contest.binary();
      const job = await jobOf(contest, folder);
      const [ours, theirs]: [number[], number[]] = [[], []];
      for (let round = 0; round <= rounds; round++) {
        const own = await timed(job.build);
        const other = await timed(() => runBare(binary, contest.args, folder));
        if (own.result !== contest.objects)
          failures.push(`${name}: ${own.result} objects, expected ${contest.objects}`);
        // The first round does not count, because it reads files from the disk.
        if (round === 0) continue;
        ours.push(own.ms);
        theirs.push(other.ms);
        say(`${name}, round ${round}: ${Math.round(own.ms)} ms, bare ${Math.round(other.ms)} ms`);
      }
      ratios[`${name}VsBinary`] = medianRatio(ours, theirs);
      figures[name] = { starling: spread(ours), bare: spread(theirs) };
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
  const inputs = await manyInputs({ rounds, say });
  ratios.perInput1000vs10 = medianRatio(inputs.many, inputs.few);
  figures.perInput = { of1000: spread(inputs.many), of10: spread(inputs.few) };
  return { target: "none", ratios, figures, failures: [...failures, ...inputs.failures] };
}

/**
 * Milliseconds for each of so many distinct inputs of one artifact, in a sandbox that has not seen it: a folder of 130 objects
 * with a variable, without a program, which would hide all else.
 */
async function manyInputs({ rounds, say }: { readonly rounds: number; readonly say: BenchOptions["say"] }) {
  const files = Object.fromEntries(
    Object.entries(kustomization())
      .filter(([name]) => name !== "kustomization.yaml")
      .map(([name, text]) => [name, text.replace("a value of some length", `\${TIER}`)]),
  );
  const { archive, artifactDigest } = await packed(files);
  const failures: string[] = [];
  const perInput = async (inputs: number) => {
    let downloads = 0;
    const digests = new Set<string>();
    const transfer: Transfer = {
      download: async () => {
        downloads += 1;
        return archive;
      },
      upload: async () => {},
    };
    const ports = portsOf(transfer);
    const { ms } = await timed(async () => {
      for (let input = 0; input < inputs; input++) {
        const specialise = { variables: { TIER: `tier-${input}` } };
        const answer = await build({ artifactDigest, path: ".", render: { plain: {} }, specialise, ...urls }, ports);
        if (answer.outcome === "failed") throw new Error(answer.message);
        digests.add(answer.digest);
      }
    });
    if (downloads !== 1) failures.push(`perInput: the artifact was read ${downloads} times for ${inputs} inputs`);
    if (digests.size !== inputs) failures.push(`perInput: ${digests.size} renderings of ${inputs} inputs`);
    return ms / inputs;
  };
  const [many, few]: [number[], number[]] = [[], []];
  // A thousand renderings are enough for a measurement.
  for (let round = 0; round <= Math.min(rounds, 3); round++) {
    const measured = [await perInput(1000), await perInput(10)] as const;
    if (round === 0) continue;
    many.push(measured[0]);
    few.push(measured[1]);
    say(`per input, round ${round}: ${measured[0].toFixed(1)} ms of 1000, ${measured[1].toFixed(1)} ms of 10`);
  }
  return { many, few, failures };
}

async function packed(files: Readonly<Record<string, string>>) {
  const listed = Object.entries(files).map(([path, text]) => ({
    path,
    executable: false,
    content: new TextEncoder().encode(text),
  }));
  return { archive: await packArtifact(listed), artifactDigest: treeDigest(listed) };
}

const urls = {
  artifactUrl: "https://localhost/a",
  renderingUrls: uploadSizes.map((bytes) => ({ bytes, url: "https://localhost/b" })),
};

/** The renderers search their program once per sandbox. Outside Lambda this hashes a package. */
const renderers = {
  kustomize: new KubectlKustomize({ kubectl: contests.kustomize.binary }),
  helm: new HelmTemplate({ helm: contests.helm.binary }),
};

function portsOf(transfer: Transfer): BuildPorts {
  return {
    transfer,
    artifact: new LastArtifact(transfer),
    ...renderers,
  };
}

async function jobOf({ files, render }: Contest, folder: string) {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  const { archive, artifactDigest } = await packed(files);
  const transfer: Transfer = { download: async () => archive, upload: async () => {} };
  const job = { artifactDigest, path: ".", render, ...urls };
  return {
    build: async () => {
      // The sandbox has not seen the artifact before.
      const answer = await build(job, portsOf(transfer));
      if (answer.outcome === "failed") throw new Error(answer.message);
      return answer.objects;
    },
  };
}

async function timed<T>(work: () => Promise<T>): Promise<{ readonly result: T; readonly ms: number }> {
  const started = performance.now();
  const result = await work();
  return { result, ms: performance.now() - started };
}

function runBare(binary: string, args: readonly string[], cwd: string): Promise<void> {
  const child = spawn(binary, args, { cwd, env: { PATH: "", HOME: cwd }, stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((resolve, reject) => {
    child.stdout.resume();
    child.on("error", reject);
    child.on("close", (status) => {
      if (status === 0) resolve();
      else reject(new Error(`${binary} ended with status ${status}`));
    });
  });
}

function kustomization(): Record<string, string> {
  const files: Record<string, string> = {};
  for (let index = 0; index < kustomizeObjects; index++) {
    files[`o${index}.yaml`] = index % 3 === 0 ? deploymentText(`o${index}`, "web") : configText(`o${index}`);
  }
  files["kustomization.yaml"] =
    `namespace: shop\nlabels: [{pairs: {team: shop}}]\nimages: [{name: web, newTag: "2"}]\nresources: [${Object.keys(files).join(", ")}]\n`;
  return files;
}

function chart(): Record<string, string> {
  const files: Record<string, string> = {
    "Chart.yaml": "apiVersion: v2\nname: web\nversion: 0.1.0\n",
    "values.yaml": "replicas: 2\nimage: {repository: web, tag: '1'}\ntier: std\n",
    "templates/_helpers.tpl": `{{- define "web.labels" -}}\napp: {{ .Release.Name }}\ntier: {{ .Values.tier | quote }}\nchart: {{ printf "%s-%s" .Chart.Name .Chart.Version | trunc 63 }}\n{{- end }}\n`,
  };
  for (let index = 0; index < templates; index++) {
    const text =
      index % 3 === 0
        ? deploymentText(`{{ .Release.Name }}-${index}`, "{{ .Values.image.repository }}:{{ .Values.image.tag }}")
        : configText(`{{ .Release.Name }}-${index}`);
    files[`templates/o${index}.yaml`] = text.replace(
      "metadata:",
      'metadata:\n  labels: {{- include "web.labels" . | nindent 4 }}',
    );
  }
  return files;
}

function configText(name: string): string {
  const data = Array.from({ length: 10 }, (_, index) => `  key-${index}: "a value of some length, as in settings"`);
  return `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\ndata:\n${data.join("\n")}\n`;
}

function deploymentText(name: string, image: string): string {
  return `apiVersion: apps/v1
kind: Deployment
metadata:
  name: ${name}
spec:
  replicas: 2
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec:
      containers:
      - name: web
        image: ${image}
        ports: [{containerPort: 8080, protocol: TCP}]
        env: [{name: A, value: "1"}, {name: B, value: "2"}]
        resources: {requests: {cpu: 10m, memory: 32Mi}, limits: {memory: 64Mi}}
`;
}
