/** A typical chart of a team: helpers, a vendored dependency, a CRD, a file that a template reads, and a test. */
export const shopChart: Readonly<Record<string, string>> = {
  "Chart.yaml":
    'apiVersion: v2\nname: shop\nversion: 1.2.3\nappVersion: "6.9.1"\ndependencies:\n- {name: cache, version: 0.x, repository: "https://charts.example.com", condition: cache.enabled}\n',
  "values.yaml":
    "replicas: 2\nimage: {repository: ghcr.io/acme/shop, tag: ''}\ncolour: blue\nnote: 'up {{ $labels.pod }}'\ncache: {enabled: true, size: 64Mi}\n",
  ".helmignore": "*.md\n",
  "README.md": "# no part of it",
  "config/app.ini": "[shop]\nmode = fast\n",
  "templates/_helpers.tpl": `{{- define "shop.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
`,
  "templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-shop
  labels: {{- include "shop.labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
      - name: shop
        image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
        ports: [{containerPort: 8080, protocol: TCP}]
`,
  "templates/config.yaml": `{{- range $name := list "a" "b" }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: shop-{{ $name }}
  namespace: {{ $.Release.Namespace }}
data:
  app.ini: {{ $.Files.Get "config/app.ini" | quote }}
  colour: {{ $.Values.colour | quote }}
  note: {{ $.Values.note | quote }}
  kubernetes: {{ $.Capabilities.KubeVersion.Version | quote }}
  monitored: {{ $.Capabilities.APIVersions.Has "monitoring.coreos.com/v1" | quote }}
{{- end }}
`,
  "templates/NOTES.txt": "Thank you for {{ .Release.Name }}.",
  "templates/tests/reachable.yaml":
    "apiVersion: v1\nkind: Pod\nmetadata: {name: reachable, annotations: {helm.sh/hook: test}}\nspec: {containers: [{name: c, image: busybox}]}\n",
  "crds/colours.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: colours.shop.example.com}
spec:
  group: shop.example.com
  scope: Namespaced
  names: {plural: colours, singular: colour, kind: Colour}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`,
  "charts/cache/Chart.yaml": "apiVersion: v2\nname: cache\nversion: 0.4.0\n",
  "charts/cache/values.yaml": "size: 32Mi\n",
  "charts/cache/templates/cache.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-cache}
data: {size: {{ .Values.size | quote }}}
`,
};

/** The same files below a folder. */
export function below<Content>(folder: string, files: Readonly<Record<string, Content>>): Record<string, Content> {
  return Object.fromEntries(Object.entries(files).map(([path, content]) => [`${folder}/${path}`, content]));
}
