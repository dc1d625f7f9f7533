const namesShown = 5;

export function clustersText(clusters: readonly string[]): string {
  if (clusters.length === 1) return `cluster ${clusters[0]}`;
  const more = clusters.length > namesShown ? ` and ${clusters.length - namesShown} more` : "";
  return `${clusters.length} clusters: ${clusters.slice(0, namesShown).join(", ")}${more}`;
}
