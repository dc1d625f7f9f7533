/**
 * The words that Starling no longer uses, and the words that it uses instead. The glossary in the documentation
 * explains the new ones.
 *
 * `in` says where a word is refused: in identifiers (names of files included), in texts (comments, strings and pages), or
 * in both. A word is refused in each of its forms that the table names, and inside of longer identifiers.
 */
export const oldWords = [
  { old: ["leg", "legs"], use: "stage run" },
  { old: ["seal", "seals", "sealed", "sealing"], use: "snapshot" },
  { old: ["arrival", "arrivals"], use: "catch-up" },
  { old: ["arrive", "arrives", "arrived", "arriving"], use: "catch up", in: "identifiers" },
  { old: ["park", "parks", "parked", "parking"], use: "pause" },
  { old: ["brake", "brakes", "braked"], use: "freeze" },
  { old: ["farewell", "farewells"], use: "deletion" },
  { old: ["furniture"], use: "default objects of a namespace" },
  { old: ["trouble", "troubles"], use: "problem" },
  { old: ["sick"], use: "unhealthy" },
  { old: ["untold"], use: "pending" },
  { old: ["mend", "mends", "mended", "mending"], use: "repair, fix" },
  { old: ["told", "tell", "tells", "telling"], use: "report", in: "identifiers" },
  { old: ["subject", "subjects"], use: "owner", in: "identifiers" },
  { old: ["wanted", "wants"], use: "desired", in: "identifiers" },
  { old: ["look", "looks", "looked", "looking"], use: "check, scan, poll, read", in: "identifiers" },
  { old: ["door", "doors"], use: "API" },
];

/** Phrases that are refused in texts. */
export const oldPhrases = [
  { old: /\bcontents? under way\b/i, use: "rollouts in progress" },
  { old: /\bat rest\b/i, use: "idle" },
  { old: /\b(gives?|gave|given|giving) back\b/i, use: "restore, release" },
  { old: /\b(lets?|letting) go\b/i, use: "release" },
  { old: /\b(takes?|took|taken|taking) up\b/i, use: "start" },
  { old: /\b[Aa]s [\w' -]{1,40} (has|have|had) it\b/, use: "name who says or holds it" },
  { old: /\b(goes|go|went) by\b/i, use: "use, follow" },
];

/** Identifiers in which `content` and `unit` meant what is a rollout and a rollout's state now. */
export const oldIdentifiers = [
  { old: /^contents?(row|state|number|key|status|id)s?$/i, use: "rollout" },
  { old: /^(rollout)?units?(row|key|state)s?$/i, use: "rollout state" },
];

/** Files in which an old word is right. `words` are the forms that are left alone in files whose path matches. */
export const exceptions = [
  { path: /^(scripts\/language\/|test\/unit\/scripts\/lint-language)/, reason: "They are about the old words." },
  { path: /^docs\/words\.md$/, reason: "The glossary names what others call a thing." },
  { path: /^(LICENSE|package-lock\.json|test\/fixtures\/|local\/apiserver\/apply\/builtin)/, reason: "Not our text." },
  { path: /^docs\/contributing\/how-to-add/, words: ["mends"], reason: "It quotes the title of a commit." },
  {
    path: /^shared\/source\/kustomize\/kustomize-message/,
    words: ["trouble"],
    reason: "kustomize's messages have it.",
  },
  {
    path: /^test\/unit\/shared\/fleet\/foreign\/same-in-starling/,
    words: ["sealed"],
    reason: "A chart is called sealed-secrets.",
  },
  {
    path: /^local\/(apiserver|aws)\//,
    words: ["subject", "subjects", "arrive", "arrives", "arrived", "arriving"],
    reason: "RBAC and tokens have subjects, and requests arrive.",
  },
  {
    path: /^(shared\/fleet\/access\/cluster-rbac|local\/(machine\/by-hand|clusters\/own-cluster)|test\/bench\/objects|test\/synth\/cluster-access|test\/contract\/(kube\/cluster-access|local\/apiserver\/authorization)|test\/integration\/shared\/kube\/engine\/(apply-set|scenario-rows))/,
    words: ["subject", "subjects"],
    reason: "They write bindings of RBAC, which have subjects.",
  },
  {
    path: /^(cli\/format\/describe-object|functions\/resolve\/(fetch-artifact|upstreams\/locate-git)|shared\/(adapters\/git\/|fleet\/(api\/history-item|rows\/object-rows)|pages\/module-page|ports)|test\/(bench\/planned-group|integration\/(cli\/(assigned-fleet|includes|other-revisions|pinned-and-included|source-artifacts|read-commands|source-push|starling)|functions\/(api\/artifact-answers|resolve\/(archive|helm|oci|resolve|s3|source-events))|shared\/adapters\/git\/)|support\/(collection-world|planner-world)|unit\/(functions\/api\/(artifacts|history|overview|plan-command-reads)|shared\/(adapters\/git\/|fleet\/(rollout\/desired-plan|rows\/revision-row|sources\/next-resolve)))))/,
    words: ["subject"],
    reason: "The first line of a commit's message is its subject.",
  },
  {
    path: /cosign|keyless|sigstore|^local\/registry\/|^shared\/fleet\/kinds\/semantics/,
    words: ["subject"],
    reason: "Certificates, statements and manifests of registries have subjects.",
  },
];

/** File names that several folders have: they say what part of the folder a file is, not what it exports. */
export const conventionalFiles = {
  "handler.ts": "Every function's entry point, named by the infrastructure.",
  "env.ts": "Every function's environment, read by the infrastructure.",
  "wire.ts": "Every function's adapters.",
};

/** Names that several files export. */
export const conventionalExports = {
  handler: "The name that Lambda calls in every handler.ts.",
};
