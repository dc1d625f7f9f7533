/** Pairs of a message of kustomize's and its remedy. */
const remedies: readonly (readonly [RegExp, string])[] = [
  [
    /failed to find unique target for patch|no resource matches strategic merge patch/,
    "correct the patch's kind, name or namespace, or leave it out",
  ],
  [
    /unable to parse SM or JSON patch/,
    'kustomize reads a patch that begins with [ as JSON, so that it needs names and texts in double quotes: [{"op": "replace", "path": "/spec/replicas", "value": 3}]',
  ],
  [
    /security; file '[^']*' is not in or below/,
    "a kustomization may only name files in its own folder and below: add a kustomization.yaml to the other folder, and name that folder",
  ],
];

/** The remedy that follows kustomize's own words. */
export function kustomizeRemedy(said: string): string {
  const found = remedies.find(([words]) => words.test(said));
  return found === undefined ? "" : `; ${found[1]}`;
}
