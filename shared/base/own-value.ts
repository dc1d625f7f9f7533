/** The map's own value for a name that a user chose, but never an inherited one such as `constructor`. */
export function ownValue<V>(map: Readonly<Record<string, V>>, name: string): V | undefined {
  return Object.hasOwn(map, name) ? map[name] : undefined;
}
