/** Legend: what kustomize says, and what to do about it. */
const remedies: readonly (readonly [RegExp, string])[] = [
  [
    /failed to find unique target for patch|no resource matches strategic merge patch/,
    "correct the patch's kind, name or namespace, or leave it out",
  ],
  [
    /unable to parse SM or JSON patch/,
    'a patch that begins with [ is read as JSON, with names and texts in double quotes: [{"op": "replace", "path": "/spec/replicas", "value": 3}]',
  ],
  [
    /security; file '[^']*' is not in or below/,
    "a kustomization names files of its own folder and below: give the other folder a kustomization.yaml, and name that folder",
  ],
];

/** What goes behind kustomize's own words. */
export function kustomizeRemedy(said: string): string {
  const found = remedies.find(([words]) => words.test(said));
  return found === undefined ? "" : `; ${found[1]}`;
}
