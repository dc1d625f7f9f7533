/** The value a map of people's names has for a name; never one that every object has, such as `constructor`. */
export function ownValue<V>(map: Readonly<Record<string, V>>, name: string): V | undefined {
  return Object.hasOwn(map, name) ? map[name] : undefined;
}
