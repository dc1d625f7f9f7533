/**
 * The imports that each folder may have, as docs/architecture.md draws them. `npm run lint` checks them, types included, and
 * test/synth/layers.test.ts breaks each rule once.
 */

const code = "^(shared|functions|local|cli|infra|test|scripts|examples)/";

/**
 * Lets files below `from` import our files below `ours`, and these packages. A `node:` module counts as a package. Without
 * `packages`, every package is allowed.
 */
function layer(name, from, { ours, packages, comment }) {
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
/** The dashboard answers by the same routes as the API. */
const reads = "^functions/api/http/(read-with|read-routes)\\.ts$";
const base = "^shared/base/";
const kube = "^shared/kube/";
const source = "^shared/source/";
const fleet = "^shared/fleet/";
const layers = [base, kube, source, fleet];
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
      comment: "At most one of two folders imports the other, so that each can be read from top to bottom.",
      severity: "error",
      scope: "folder",
      // The embedded API server is frozen, and its operations, kinds and authorization are one thing.
      from: { path: "^(shared|functions|local|cli|infra)(/|$)", pathNot: "^local/apiserver/" },
      to: { circular: true },
    },
    ...layer("base", base, {
      ours: [base],
      packages: ["zod", "crypto"],
      comment: "shared/base is small and imports no other layer.",
    }),
    ...layer("kube", kube, {
      ours: [base, kube],
      packages: ["zod", "crypto"],
      comment: "shared/kube models Kubernetes: it imports shared/base, and it reaches the world by ports only.",
    }),
    ...layer("source", source, {
      ours: [base, kube, source],
      packages: ["zod", "semver", "re2js", "js-yaml", "crypto"],
      comment: "shared/source models sources: it imports base and kube, and it does no I/O.",
    }),
    ...layer("fleet", fleet, {
      ours: layers,
      packages: ["zod", "crypto", "croner"],
      comment: "shared/fleet models the fleet: it imports base, kube and source, and it does no I/O.",
    }),
    ...layer("words", "^shared/words/", {
      ours: [...layers, words],
      packages: [],
      comment: "shared/words has the texts for people: it imports the four layers, and it does no I/O.",
    }),
    ...layer("pages", "^shared/pages/", {
      ours: [...layers, words, "^shared/pages/"],
      packages: ["hono", "http", "crypto"],
      comment: "shared/pages has the web pages: it imports the layers and the words, and it asks the API.",
    }),
    ...layer("ports", "^shared/(ports|messages)\\.ts$", {
      ours: [...layers, "^shared/messages\\.ts$"],
      packages: ["zod"],
      comment: "Ports and messages import the four layers only.",
    }),
    ...layer("lambda", "^shared/lambda/", { ours: ["^shared/"], comment: "shared imports shared only." }),
    ...layer("adapters", "^shared/adapters/", {
      ours: [...layers, "^shared/(ports|messages)\\.ts$", "^shared/adapters/"],
      comment: "Adapters implement the ports: they import the layers, ports, messages and each other.",
    }),
    ...functions.flatMap((each) =>
      layer(`function-${each}`, `^functions/${each}/`, {
        ours: ["^shared/", `^functions/${each}/`],
        comment: "A function imports shared and its own folder only.",
      }),
    ),
    {
      name: "api-parts",
      comment: "The reads and writes of the API know no route.",
      severity: "error",
      from: { path: "^functions/api/(read|write|request)/" },
      to: { path: "^functions/api/http/" },
    },
    {
      name: "api-readers",
      comment: "The reads of the API write nothing.",
      severity: "error",
      from: { path: "^functions/api/read/" },
      to: { path: "^functions/api/write/" },
    },
    {
      name: "planner-steps",
      comment:
        "A step of the planner imports no other step: only functions/rollout/call/planner-steps.ts knows their order.",
      severity: "error",
      from: { path: "^functions/rollout/steps/([^/]+)" },
      to: { path: "^functions/rollout/(steps|call)/", pathNot: "^functions/rollout/steps/$1" },
    },
    {
      name: "planner-writers",
      comment: "Readers, writers, jobs and repairs of the planner know no step.",
      severity: "error",
      from: { path: "^functions/rollout/(read|write|jobs|repair)/" },
      to: { path: "^functions/rollout/(steps|call)/" },
    },
    {
      name: "planner-readers",
      comment: "Readers of the planner write nothing.",
      severity: "error",
      from: { path: "^functions/rollout/read/" },
      to: { path: "^functions/rollout/(write|jobs|repair)/" },
    },
    ...layer("function-dashboard", "^functions/dashboard/", {
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
    ...layer("function-env", "^functions/[^/]+/env\\.ts$", {
      ours: ["^nothing$"],
      packages: ["zod"],
      comment: "env.ts is read by infra: it imports zod and nothing else.",
    }),
    ...layer("infra", "^infra/", {
      ours: ["^infra/", "^functions/[^/]+/env\\.ts$", ...layers],
      comment: "infra imports functions/*/env.ts and the four layers of shared only.",
    }),
    ...layer("cli", "^cli/", {
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
    ...layer("local", "^local/", {
      ours: ["^local/", "^shared/", "^functions/", "^infra/", "^examples/"],
      comment: "local imports neither cli nor test.",
    }),
    ...layer("apiserver", "^local/apiserver/", {
      ours: ["^local/apiserver/"],
      comment: "The embedded API server is a package of its own: it imports nothing of Starling.",
    }),
    {
      name: "apiserver-exports",
      comment: "Other folders import only what the package.json of the embedded API server exports.",
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
