/**
 * `node scripts/bundle-sizes.mjs [assembly]`: prints the size of every function's code in a synthesized assembly
 * (default cdk.out), and fails if a function exceeds its limit. Lambda reads and compiles the code at every cold start,
 * at about 40 ms per megabyte.
 */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const assembly = process.argv[2] ?? "cdk.out";
const bytesPerKib = 1024;
/** Every function has the SDK's clients of DynamoDB and SQS. The lines below name additional clients. */
const defaultLimitKib = 1500;
const limitsKib = {
  // The clients of S3, Lambda, Secrets Manager and CloudWatch Logs, the verbs about rollouts, the kinds, re2js with 260 KiB, and
  // what reads a trusted_root.json with 140 KiB, at its first use.
  Api: 2990,
  // The client of Secrets Manager, the reader of issuers' keys with jose, and re2js with 270 KiB for the patterns of claims.
  Webhook: 1800,
  // The clients of EKS, STS, SSM, Organizations and the Tagging API.
  Discover: 1850,
  // The client of S3, and the schema of Sources with semver, by which it knows what a Source's present spec makes.
  Rollout: 2090,
  // The client of S3, the pages, and the kinds that they show.
  Dashboard: 2080,
  // The clients of S3 and Lambda.
  Render: 1750,
  // The clients of S3, Secrets Manager, EKS and STS, and the shape of the rows that it writes (all functions have this).
  Apply: 2295,
  // The clients of S3 and Secrets Manager, isomorphic-git, and the readers of registries, repositories and archives. ssh2 has 800
  // KiB, and is read at its first use. re2js has 260 KiB, and what reads
  // cosign's bundles 140 KiB. The client of EventBridge has 52 KiB, and included Sources, pinned revisions, shared polls, events
  // and the limits of hosts have about 40 KiB together.
  Resolve: 4090,
};

const templates = existsSync(assembly) ? readdirSync(assembly).filter((name) => name.endsWith(".template.json")) : [];
const functions = templates.flatMap((name) => {
  const { Resources } = JSON.parse(readFileSync(join(assembly, name), "utf8"));
  return Object.entries(Resources).filter(([, { Type }]) => Type === "AWS::Lambda::Function");
});
if (functions.length === 0) {
  console.error(`no function in ${assembly}; run \`npx cdk synth\` first`);
  process.exit(1);
}

let over = 0;
for (const [id, { Properties, Metadata }] of functions) {
  const folder = Metadata?.["starling:folder"] ?? id;
  const name = `${folder[0].toUpperCase()}${folder.slice(1)}`;
  const asset = `asset.${Properties.Code.S3Key.replace(/\.zip$/, "")}`;
  const kib = Math.ceil(statSync(join(assembly, asset, "index.mjs")).size / bytesPerKib);
  const limit = limitsKib[name] ?? defaultLimitKib;
  if (kib > limit) over++;
  console.log(`${name.padEnd(10)} ${String(kib).padStart(5)} KiB of ${limit}${kib > limit ? "  TOO LARGE" : ""}`);
}
process.exit(over > 0 ? 1 : 0);
