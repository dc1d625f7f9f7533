/** `a.b`, or `a["b/c"]`, because keys can contain dots and slashes. */
export function fieldPath(field: string, name: string): string {
  const step = /^[A-Za-z0-9_-]+$/.test(name) ? name : `[${JSON.stringify(name)}]`;
  if (field === "" || step.startsWith("[")) return `${field}${step}`;
  return `${field}.${step}`;
}
