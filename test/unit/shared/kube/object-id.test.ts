import { expect, test } from "vitest";
import { placesOf } from "#shared/kube/object-id.ts";

const id = (namespace: string) => ({ group: "", kind: "ConfigMap", namespace, name: "c" });

test.each([
  { given: "", defaultNamespace: undefined, places: [""] },
  { given: "", defaultNamespace: "shop", places: ["", "shop"] },
  { given: "own", defaultNamespace: undefined, places: ["own", ""] },
  { given: "own", defaultNamespace: "shop", places: ["own", ""] },
])("namespace $given with default $defaultNamespace may be in $places", ({ given, defaultNamespace, places }) => {
  expect(placesOf(id(given), defaultNamespace)).toEqual(places.map(id));
});
