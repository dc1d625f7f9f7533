import { namespaceManifest } from "#test/support/e2e-documents.ts";
import { tarGz } from "#test/support/tar-gz.ts";

/** A chart with one ConfigMap, in which its version and the value `region` are, as `helm package` packs it. */
export function packedChart(name: string, version: string): Promise<Buffer> {
  const settings = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "settings", namespace: "{{ .Release.Namespace }}" },
    data: { version: "{{ .Chart.Version }}", region: "{{ .Values.region }}" },
  };
  return tarGz([
    { name: `${name}/Chart.yaml`, body: `apiVersion: v2\nname: ${name}\nversion: ${version}\n` },
    { name: `${name}/values.yaml`, body: "region: none\n" },
    { name: `${name}/templates/namespace.yaml`, body: namespaceManifest },
    { name: `${name}/templates/settings.yaml`, body: JSON.stringify(settings) },
  ]);
}
