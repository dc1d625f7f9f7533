/** A repository that was not written for Starling. Its YAML contains everything that a reader can get wrong. */

const namespace = `apiVersion: v1
kind: Namespace
metadata:
  name: estate
  labels: {team: "0644"}
`;

const definitions = `# A definition, a cluster-scoped one, and an object of each: in one folder.
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: ledgers.books.example.com
spec:
  group: books.example.com
  scope: Namespaced
  names: {plural: ledgers, singular: ledger, kind: Ledger, shortNames: [ld]}
  versions:
    - name: v1
      served: true
      storage: true
      additionalPrinterColumns:
        - {name: Serial, type: integer, jsonPath: .spec.serial}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [serial]
              properties:
                serial: {type: integer, format: int64, minimum: 0}
                open: {type: boolean}
                ratio: {type: number}
                mode: {type: integer, format: int32}
                entries:
                  type: array
                  x-kubernetes-list-type: map
                  x-kubernetes-list-map-keys: [key]
                  items:
                    type: object
                    required: [key]
                    properties:
                      key: {type: string}
                      amount: {type: integer, format: int64}
                free:
                  type: object
                  x-kubernetes-preserve-unknown-fields: true
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: vaults.books.example.com
spec:
  group: books.example.com
  scope: Cluster
  names: {plural: vaults, singular: vault, kind: Vault}
  versions:
    - name: v1beta1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          x-kubernetes-preserve-unknown-fields: true
`;

const ledger = `apiVersion: books.example.com/v1
kind: Ledger
metadata:
  name: main
  annotations: {books.example.com/note: "colons: and # hashes"}
spec:
  serial: 9007199254740993
  open: true
  ratio: 0.1
  mode: 0644
  entries:
    - {key: first, amount: 9223372036854775807}
    - {key: second, amount: -9007199254740993}
  free:
    switch: yes
    text: "on"
    deep: [[1, 2], {yes: no}]
    big: 9007199254740993
---
apiVersion: books.example.com/v1beta1
kind: Vault
metadata:
  name: deep.one
spec: {tonnes: 9007199254740993}
`;

const access = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: system:MyRole
rules:
  - apiGroups: ["", apps]
    resources: [configmaps, deployments]
    verbs: [get, list]
  - nonResourceURLs: [/healthz]
    verbs: [get]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: system:MyRole:Everybody
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:MyRole"}
subjects:
  - {apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:authenticated"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "Team:Deployers"}
rules: [{apiGroups: [""], resources: [pods], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "Team:Deployers"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "Team:Deployers"}
subjects: [{kind: ServiceAccount, name: worker, namespace: estate}]
`;

/** kustomize reads `yes` as a string, kubectl as a boolean. Only a string may be in a ConfigMap. */
const settings = `apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: settings}
    data:
      serial: "9007199254740993"
      switch: yes
      mode: "0644"
      empty: ""
      script: |
        #!/bin/sh
        echo "a: b" # c
      folded: >-
        one
        two
    binaryData: {bytes: AAECAw==}
  - apiVersion: v1
    kind: ServiceAccount
    metadata: {name: worker}
    automountServiceAccountToken: false
`;

const workloads = `---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  strategy: {rollingUpdate: {maxSurge: 25%, maxUnavailable: 0}}
  template:
    metadata:
      labels: {app: web}
      annotations: {serial: "9007199254740993"}
    spec:
      serviceAccountName: worker
      initContainers:
        - {name: prepare, image: "registry.example/prepare:1.0", command: [sh, -c, "true"]}
      containers:
        - name: web
          image: registry.example/web:1.0
          args: ["--enable", "yes", "--mode=0644"]
          ports: [{name: http, containerPort: 8080}, {name: dns, containerPort: 8080, protocol: UDP}]
          env:
            - {name: ENABLED, value: "yes"}
            - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
          resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 256Mi}}
          readinessProbe: {httpGet: {path: /ready, port: http}, periodSeconds: 5}
          securityContext: {runAsUser: 1000, capabilities: {drop: [ALL]}}
          volumeMounts: [{name: settings, mountPath: /etc/settings, readOnly: true}]
      volumes:
        - {name: settings, configMap: {name: settings, defaultMode: 0644}}
        - {name: cache, emptyDir: {}}
---

---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: http}, {name: dns, port: 80, targetPort: dns, protocol: UDP}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: books}
spec:
  serviceName: books
  replicas: 1
  selector: {matchLabels: {app: books}}
  template:
    metadata: {labels: {app: books}}
    spec:
      containers: [{name: books, image: "registry.example/books:1.0", volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: balance}
spec:
  schedule: "0 4 * * *"
  suspend: false
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: balance, image: "registry.example/balance:1.0"}]
`;

const traffic = `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 5
  metrics:
    - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web}
spec:
  podSelector: {matchLabels: {app: web}}
  policyTypes: [Ingress]
  ingress:
    - from: [{podSelector: {matchLabels: {app: gate}}}, {ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}]
      ports: [{port: 8080}, {port: 9000, endPort: 9010, protocol: TCP}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  ingressClassName: public
  tls: [{hosts: [web.example.com], secretName: web-tls}]
  rules:
    - host: web.example.com
      http:
        paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 50%, selector: {matchLabels: {app: web}}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000000
description: for the gate
`;

const gate = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "gate", namespace: "estate" },
  data: { port: "0080" },
};

const ringOverlay = (ring: string, replicas: number) => `namespace: estate
resources: [../../base]
labels:
  - {pairs: {ring: ${ring}}, includeSelectors: false}
patches:
  - target: {kind: Deployment, name: web}
    patch: |-
      - {op: replace, path: /spec/replicas, value: ${replicas}}
configMapGenerator:
  - {name: ring, literals: [name=${ring}, on=yes]}
secretGenerator:
  - {name: token, type: Opaque, literals: ["password=9007199254740993"]}
`;

/** Files by path. */
export const foreignRepository: Readonly<Record<string, string>> = {
  "README.md": "# Books\n\n---\nkind: NotAManifest\n",
  "base/kustomization.yaml":
    "resources: [namespace.yaml, books, access.yaml, settings.yaml, workloads.yaml, traffic.yaml]\n",
  "base/namespace.yaml": namespace,
  "base/books/kustomization.yml": "resources: [ledger.yaml, definitions.yaml]\n",
  "base/books/definitions.yaml": definitions,
  "base/books/ledger.yaml": ledger,
  "base/access.yaml": access,
  "base/settings.yaml": settings,
  "base/workloads.yaml": workloads,
  "base/traffic.yaml": traffic,
  "overlays/canary/kustomization.yaml": ringOverlay("canary", 1),
  "overlays/early/kustomization.yaml": ringOverlay("early", 2),
  "overlays/broad/kustomization.yaml": ringOverlay("broad", 3),
  "single/kustomization.yaml":
    'nameSuffix: -eu\nresources: [../base]\nimages: [{name: registry.example/web, newTag: "1.1"}]\n',
  "plain/10-namespace.yaml": namespace,
  "plain/20-definitions.yml": definitions,
  "plain/30-ledger.yaml": ledger.replace("open: true", "open: yes"),
  "plain/40-all.yaml": [
    access,
    settings.replace("switch: yes", 'switch: "yes"'),
    workloads.replace("suspend: false", "suspend: no"),
    traffic,
  ].join("---\n"),
  "plain/gate.json": JSON.stringify(gate),
  "plain/notes.txt": "kind: NotAManifest\n",
  "broken/web.yaml": workloads.replaceAll("registry.example/web:", "registry.invalid/web:"),
};
