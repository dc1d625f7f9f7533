# Gives Starling access to one EKS cluster: a role for this Cluster only, its access entry, and its group's permissions.
# Written by "node infra/bin/cluster-access.ts"; the CloudFormation template and the CDK construct StarlingClusterAccess create the same.

terraform {
  required_version = ">= 1.3"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.33"
    }
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = ">= 2.20"
    }
  }
}

variable "apply_role" {
  description = "Output ApplyRole of Starling's control stack."
  type        = string
}

variable "installation_id" {
  description = "Output ExternalId up to its slash: starling.<account>.<region>."
  type        = string
}

variable "cluster" {
  description = "metadata.name of the Cluster in Starling."
  type        = string
}

variable "eks_cluster" {
  description = "Name of the EKS cluster; its authentication mode must support access entries."
  type        = string
}

variable "role_path" {
  description = "Path of the roles that Starling may assume."
  type        = string
  default     = "/starling/clusters/"
}

variable "role_name" {
  description = "Name of the role (default: the name of the Cluster)."
  type        = string
  default     = null
}

variable "group" {
  description = "Kubernetes group of Starling."
  type        = string
  default     = "starling"
}

variable "fleet_rules" {
  description = "Rights for the kinds that manifests of the fleet may have."
  type = list(object({
    api_groups     = list(string)
    resources      = list(string)
    resource_names = optional(list(string))
    verbs          = list(string)
  }))
  default = [
    {
      api_groups = [""]
      resources  = ["configmaps", "limitranges", "namespaces", "persistentvolumeclaims", "resourcequotas", "secrets", "serviceaccounts", "services"]
      verbs      = ["get", "list", "create", "patch", "delete"]
    },
    {
      api_groups = ["apps"]
      resources  = ["daemonsets", "deployments", "statefulsets"]
      verbs      = ["get", "list", "create", "patch", "delete"]
    },
    {
      api_groups = ["autoscaling"]
      resources  = ["horizontalpodautoscalers"]
      verbs      = ["get", "list", "create", "patch", "delete"]
    },
    {
      api_groups = ["batch"]
      resources  = ["cronjobs", "jobs"]
      verbs      = ["get", "list", "create", "patch", "delete"]
    },
    {
      api_groups = ["networking.k8s.io"]
      resources  = ["ingresses", "networkpolicies"]
      verbs      = ["get", "list", "create", "patch", "delete"]
    },
    {
      api_groups = ["policy"]
      resources  = ["poddisruptionbudgets"]
      verbs      = ["get", "list", "create", "patch", "delete"]
    },
    {
      api_groups = ["rbac.authorization.k8s.io"]
      resources  = ["rolebindings", "roles"]
      verbs      = ["get", "list", "create", "patch", "delete"]
    }
  ]
}

data "aws_eks_cluster" "this" {
  name = var.eks_cluster
}

resource "aws_iam_role" "starling" {
  path        = var.role_path
  name        = coalesce(var.role_name, var.cluster)
  description = "Assumed by Starling, to keep one cluster in sync with git"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect = "Allow"
        Action = "sts:AssumeRole"
        Principal = {
          AWS = "${var.apply_role}"
        }
        Condition = {
          StringEquals = {
            "sts:ExternalId" = "${var.installation_id}/${var.cluster}"
          }
        }
      }
    ]
  })
}

resource "aws_iam_role_policy" "describe" {
  name = "describe-cluster"
  role = aws_iam_role.starling.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect   = "Allow"
        Action   = "eks:DescribeCluster"
        Resource = "${data.aws_eks_cluster.this.arn}"
      }
    ]
  })
}

resource "aws_eks_access_entry" "starling" {
  cluster_name      = var.eks_cluster
  principal_arn     = aws_iam_role.starling.arn
  kubernetes_groups = [var.group]
  type              = "STANDARD"
}

resource "kubernetes_namespace_v1" "starling" {
  metadata {
    name   = "starling-system"
    labels = { "app.kubernetes.io/managed-by" = "starling" }
  }
}

resource "kubernetes_cluster_role_v1" "own" {
  metadata {
    name   = var.group
    labels = { "app.kubernetes.io/managed-by" = "starling" }
  }

  rule {
    api_groups     = [""]
    resources      = ["namespaces"]
    resource_names = ["kube-system", "starling-system"]
    verbs          = ["get"]
  }

  rule {
    api_groups = ["*"]
    resources  = ["*"]
    verbs      = ["list"]
  }

  rule {
    api_groups = ["apiextensions.k8s.io"]
    resources  = ["customresourcedefinitions"]
    verbs      = ["get"]
  }
}

resource "kubernetes_cluster_role_binding_v1" "own" {
  metadata {
    name   = var.group
    labels = { "app.kubernetes.io/managed-by" = "starling" }
  }

  role_ref {
    api_group = "rbac.authorization.k8s.io"
    kind      = "ClusterRole"
    name      = kubernetes_cluster_role_v1.own.metadata[0].name
  }

  subject {
    api_group = "rbac.authorization.k8s.io"
    kind      = "Group"
    name      = var.group
  }
}

resource "kubernetes_role_v1" "namespace" {
  metadata {
    name      = var.group
    namespace = kubernetes_namespace_v1.starling.metadata[0].name
    labels    = { "app.kubernetes.io/managed-by" = "starling" }
  }

  rule {
    api_groups = [""]
    resources  = ["configmaps"]
    verbs      = ["get", "create", "update", "delete"]
  }
}

resource "kubernetes_role_binding_v1" "namespace" {
  metadata {
    name      = var.group
    namespace = kubernetes_namespace_v1.starling.metadata[0].name
    labels    = { "app.kubernetes.io/managed-by" = "starling" }
  }

  role_ref {
    api_group = "rbac.authorization.k8s.io"
    kind      = "Role"
    name      = kubernetes_role_v1.namespace.metadata[0].name
  }

  subject {
    api_group = "rbac.authorization.k8s.io"
    kind      = "Group"
    name      = var.group
  }
}

resource "kubernetes_cluster_role_v1" "fleet" {
  metadata {
    name   = "${var.group}-fleet"
    labels = { "app.kubernetes.io/managed-by" = "starling" }
  }

  dynamic "rule" {
    for_each = var.fleet_rules

    content {
      api_groups     = rule.value.api_groups
      resources      = rule.value.resources
      resource_names = rule.value.resource_names
      verbs          = rule.value.verbs
    }
  }
}

resource "kubernetes_cluster_role_binding_v1" "fleet" {
  metadata {
    name   = "${var.group}-fleet"
    labels = { "app.kubernetes.io/managed-by" = "starling" }
  }

  role_ref {
    api_group = "rbac.authorization.k8s.io"
    kind      = "ClusterRole"
    name      = kubernetes_cluster_role_v1.fleet.metadata[0].name
  }

  subject {
    api_group = "rbac.authorization.k8s.io"
    kind      = "Group"
    name      = var.group
  }
}

output "role_arn" {
  description = "Role that Starling assumes to enter the cluster."
  value       = aws_iam_role.starling.arn
}

output "access_role_name" {
  description = "Value of spec.access.role.name of the Cluster."
  value       = trimprefix("${var.role_path}${aws_iam_role.starling.name}", "/")
}
