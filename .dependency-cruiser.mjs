/**
 * Who may import whom: the picture of docs/architecture.md. `npm run lint` checks it, types included, and
 * test/synth/layers.test.ts shows that each rule can be broken.
 */

const code = "^(shared|functions|local|cli|infra|test|scripts|examples)/";

/** What files below `from` may import of ours, and by name of packages; `node:` modules count as packages. */
function room(name, from, { ours, packages, comment }) {
  const rules = [
    { name: `${name}-imports`, comment, severity: "error", from: { path: from }, to: { path: code, pathNot: ours } },
  ];
  if (packages !== undefined) {
    const allowed = packages.map((each) => `(^|(^|/)node_modules/)${each}(/|$)`);
    const to = { pathNot: [code, ...allowed] };
    rules.push({ name: `${name}-packages`, comment, severity: "error", from: { path: from }, to });
  }
  return rules;
}

const functions = ["api", "webhook", "tick", "discover", "resolve", "build", "render", "rollout", "apply", "report"];
/** What the dashboard answers with: the same reads as the API's. */
const reads = "^functions/api/(read-with|read-routes)\\.ts$";
const base = "^shared/base/";
const kube = "^shared/kube/";
const source = "^shared/source/";
const fleet = "^shared/fleet/";
const rooms = [base, kube, source, fleet];
const words = "^shared/words/";

export default {
  forbidden: [
    {
      name: "no-circles",
      comment: "A file that imports itself by way of others, types included, cannot be read alone.",
      severity: "error",
      from: { path: code },
      to: { circular: true },
    },
    {
      name: "no-folder-circles",
      comment: "Of two folders one at most knows the other: each can be read from its top to its bottom.",
      severity: "error",
      scope: "folder",
      // The embedded API server is frozen, and its operations, kinds and authorization are one thing.
      from: { path: "^(shared|functions|local|cli|infra)(/|$)", pathNot: "^local/apiserver/" },
      to: { circular: true },
    },
    ...room("base", base, {
      ours: [base],
      packages: ["zod", "crypto"],
      comment: "shared/base is small and knows nothing of the others.",
    }),
    ...room("kube", kube, {
      ours: [base, kube],
      packages: ["zod", "crypto"],
      comment: "shared/kube is what Kubernetes is: it knows shared/base, and of the world its ports only.",
    }),
    ...room("source", source, {
      ours: [base, kube, source],
      packages: ["zod", "semver", "js-yaml", "crypto"],
      comment: "shared/source is what a source is: it knows base and kube, and does no I/O.",
    }),
    ...room("fleet", fleet, {
      ours: rooms,
      packages: ["zod", "crypto"],
      comment: "shared/fleet is what a fleet is: it knows base, kube and source, and does no I/O.",
    }),
    ...room("words", "^shared/words/", {
      ours: [...rooms, words],
      packages: [],
      comment: "shared/words is how it is told: it knows the rooms, and does no I/O.",
    }),
    ...room("pages", "^shared/pages/", {
      ours: [...rooms, words, "^shared/pages/"],
      packages: ["hono", "http", "crypto"],
      comment: "shared/pages is how it is shown: it knows the rooms and the words, and asks the API.",
    }),
    ...room("ports", "^shared/(ports|messages)\\.ts$", {
      ours: [...rooms, "^shared/messages\\.ts$"],
      packages: ["zod"],
      comment: "Ports and messages speak of the rooms only.",
    }),
    ...room("lambda", "^shared/lambda/", { ours: ["^shared/"], comment: "shared imports shared only." }),
    ...room("adapters", "^shared/adapters/", {
      ours: [...rooms, "^shared/(ports|messages)\\.ts$", "^shared/adapters/"],
      comment: "Adapters play the ports: they know the rooms, ports, messages and each other.",
    }),
    ...functions.flatMap((each) =>
      room(`function-${each}`, `^functions/${each}/`, {
        ours: ["^shared/", `^functions/${each}/`],
        comment: "A function imports shared and its own folder only.",
      }),
    ),
    ...room("function-dashboard", "^functions/dashboard/", {
      ours: ["^shared/", "^functions/dashboard/", reads],
      comment: "The dashboard imports shared, its own folder, and of the api what it answers reads with.",
    }),
    {
      name: "function-unknown",
      comment: "A new function gets its rule in .dependency-cruiser.mjs.",
      severity: "error",
      from: { path: "^functions/", pathNot: `^functions/(${[...functions, "dashboard"].join("|")})/` },
      to: {},
    },
    ...room("function-env", "^functions/[^/]+/env\\.ts$", {
      ours: ["^nothing$"],
      packages: ["zod"],
      comment: "env.ts is read by infra: it imports zod and nothing else.",
    }),
    ...room("infra", "^infra/", {
      ours: ["^infra/", "^functions/[^/]+/env\\.ts$", ...rooms],
      comment: "infra imports functions/*/env.ts and the rooms of shared only.",
    }),
    ...room("cli", "^cli/", {
      ours: ["^cli/", "^shared/", "^local/"],
      comment: "cli imports shared, and in cli/commands/local*.ts local.",
    }),
    {
      name: "cli-local",
      comment: "Only cli/commands/local.ts and local-*.ts import local.",
      severity: "error",
      from: { path: "^cli/", pathNot: "^cli/commands/local[^/]*\\.ts$" },
      to: { path: "^local/" },
    },
    ...room("local", "^local/", {
      ours: ["^local/", "^shared/", "^functions/", "^infra/", "^examples/"],
      comment: "local imports neither cli nor test.",
    }),
    ...room("apiserver", "^local/apiserver/", {
      ours: ["^local/apiserver/"],
      comment: "The embedded API server is a package of its own: it knows nothing of Starling.",
    }),
    {
      name: "apiserver-doors",
      comment: "Of the embedded API server there is what its package.json exports.",
      severity: "error",
      from: { path: code, pathNot: "^local/apiserver/" },
      to: { path: "^local/apiserver/", dependencyTypesNot: ["aliased-workspace"] },
    },
    {
      name: "apiserver-testing",
      comment: "Only tests import what is there for tests.",
      severity: "error",
      from: { path: code, pathNot: "^(test|local/apiserver/test)/" },
      to: { path: "^local/apiserver/test/" },
    },
    {
      name: "no-relative-paths",
      comment: "Import through the package's imports (#shared/..., #functions/...), so that the layer shows.",
      severity: "error",
      from: { path: "^(shared|functions|local|cli|infra|test)/.*\\.ts$" },
      to: { path: code, dependencyTypesNot: ["aliased-subpath-import", "aliased-workspace"] },
    },
    {
      name: "no-unresolvable",
      comment: "It is not there, or not in package.json.",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    parser: "swc",
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "types"],
      extensions: [".ts", ".mjs", ".js", ".json"],
    },
  },
};
