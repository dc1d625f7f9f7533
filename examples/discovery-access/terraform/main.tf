# Lets one ClusterDiscovery of Starling list the EKS clusters of this account, in all regions: one role.
# Written by "node infra/bin/cluster-access.ts".

terraform {
  required_version = ">= 1.3"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.33"
    }
  }
}

variable "discover_role" {
  description = "Output DiscoverRole of Starling's control stack."
  type        = string
}

variable "installation_id" {
  description = "Output ExternalId up to its slash: starling.<account>.<region>."
  type        = string
}

variable "discovery" {
  description = "metadata.name of the ClusterDiscovery."
  type        = string
}

variable "role_path" {
  description = "Path of the roles that Starling may assume."
  type        = string
  default     = "/starling/discovery/"
}

variable "role_name" {
  description = "Name of the role, the same in each account."
  type        = string
  default     = "scan"
}

variable "parameter_path" {
  description = "Beginning of spec.values.ssm.path, such as /starling/clusters; empty: the role may read no parameter."
  type        = string
  default     = ""
}

variable "organization" {
  description = "Whether this is the account of spec.eks.organization, where the role may also list accounts and units."
  type        = bool
  default     = false
}

data "aws_partition" "current" {}

data "aws_caller_identity" "current" {}

resource "aws_iam_role" "starling" {
  path        = var.role_path
  name        = var.role_name
  description = "Assumed by Starling, to find the EKS clusters of this account"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect = "Allow"
        Action = "sts:AssumeRole"
        Principal = {
          AWS = "${var.discover_role}"
        }
        Condition = {
          StringEquals = {
            "sts:ExternalId" = "${var.installation_id}/discovery/${var.discovery}"
          }
        }
      }
    ]
  })
}

resource "aws_iam_role_policy" "clusters" {
  name = "list-clusters"
  role = aws_iam_role.starling.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect   = "Allow"
        Action   = ["eks:ListClusters", "eks:DescribeCluster", "tag:GetResources"]
        Resource = "*"
      }
    ]
  })
}

resource "aws_iam_role_policy" "parameters" {
  count = var.parameter_path == "" ? 0 : 1
  name  = "read-parameters"
  role  = aws_iam_role.starling.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect   = "Allow"
        Action   = "ssm:GetParametersByPath"
        Resource = ["arn:${data.aws_partition.current.partition}:ssm:*:${data.aws_caller_identity.current.account_id}:parameter${var.parameter_path}", "arn:${data.aws_partition.current.partition}:ssm:*:${data.aws_caller_identity.current.account_id}:parameter${var.parameter_path}/*"]
      }
    ]
  })
}

resource "aws_iam_role_policy" "organization" {
  count = var.organization ? 1 : 0
  name  = "list-accounts"
  role  = aws_iam_role.starling.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect   = "Allow"
        Action   = ["organizations:ListAccountsForParent", "organizations:ListOrganizationalUnitsForParent"]
        Resource = "*"
      }
    ]
  })
}

output "role_arn" {
  description = "Role that Starling assumes in this account."
  value       = aws_iam_role.starling.arn
}

output "discovery_role_name" {
  description = "Value of spec.eks.role.name of the ClusterDiscovery."
  value       = trimprefix("${var.role_path}${aws_iam_role.starling.name}", "/")
}
