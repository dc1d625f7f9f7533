import { expect, test } from "vitest";
import { checkOciUrl, ociRepository } from "#shared/source/oci/oci-url.ts";

test.each<[string, string, string]>([
  ["oci://ghcr.io/acme/shop", "https://ghcr.io", "acme/shop"],
  ["oci://ghcr.io/acme/shop/", "https://ghcr.io", "acme/shop"],
  ["oci://registry.acme.example:5000/a/b/c", "https://registry.acme.example:5000", "a/b/c"],
  ["oci://docker.io/nginx", "https://registry-1.docker.io", "library/nginx"],
  ["oci://docker.io/bitnamicharts/nginx", "https://registry-1.docker.io", "bitnamicharts/nginx"],
  ["oci://127.0.0.1:5000/a", "http://127.0.0.1:5000", "a"],
  ["oci://localhost/a__b--c.d", "http://localhost", "a__b--c.d"],
])("%s is read at %s under the name %s", (url, origin, name) => {
  expect(checkOciUrl(url)).toBeUndefined();
  expect(ociRepository(url)).toEqual({ origin, name });
});

test.each<[string, string]>([
  ["https://ghcr.io/acme/shop", "write it as oci://HOST/REPOSITORY"],
  ["ghcr.io/acme/shop", "write it as oci://HOST/REPOSITORY"],
  ["oci://", "is not a URL"],
  ["oci://ghcr.io", "names a registry but no repository"],
  ["oci://ghcr.io/", "names a registry but no repository"],
  ["oci://ghcr.io/acme/shop:1.2", "ends with a tag"],
  ["oci://ghcr.io/acme/shop@sha256:ab", "contains a digest"],
  ["oci://ghcr.io/acme/shop@ab", "contains a digest"],
  ["oci://bot@ghcr.io/acme", "contains a user name"],
  ["oci://ghcr.io/acme?x=1", "has a query"],
  ["oci://ghcr.io/acme/Shop", "small letters"],
  ["oci://ghcr.io/acme//shop", "small letters"],
  ["oci://ghcr.io/../shop%2f", "small letters"],
  ["oci://ghcr.io\\@evil.example/a", "contains a backslash"],
  ["oci://ghcr.io/a b", "contains a backslash, a space"],
  [`oci://ghcr.io/${"a".repeat(256)}`, "small letters"],
])("%s is refused because it %s", (url, problem) => {
  expect(checkOciUrl(url)).toContain(problem);
});
