# Eight VMs for Terraform's vSphere provider 1.26, which gives a VM a GPU by fixed DirectPath alone: not when it clones the
# VM, but when it is applied once more.
terraform {
  required_providers {
    vsphere = { source = "vmware/vsphere" }
  }
}
provider "vsphere" {}
variable "gpus" { type = list(string) }
locals {
  numbers = toset([for each in range(1, 9) : format("%02d", each)])
}
data "vsphere_datacenter" "dc" { name = "lab-dc" }
data "vsphere_compute_cluster" "gpu" {
  name          = "gpu"
  datacenter_id = data.vsphere_datacenter.dc.id
}
data "vsphere_host" "esx" {
  for_each      = local.numbers
  name          = "esx-${each.key}.lab.test"
  datacenter_id = data.vsphere_datacenter.dc.id
}
data "vsphere_datastore" "vsan" {
  name          = "vsan"
  datacenter_id = data.vsphere_datacenter.dc.id
}
data "vsphere_network" "mgmt" {
  name          = "vm-mgmt"
  datacenter_id = data.vsphere_datacenter.dc.id
}
data "vsphere_virtual_machine" "template" {
  name          = "ubuntu-22.04-gpu"
  datacenter_id = data.vsphere_datacenter.dc.id
}
resource "vsphere_virtual_machine" "node" {
  for_each                   = local.numbers
  name                       = "tofu-${each.key}"
  resource_pool_id           = data.vsphere_compute_cluster.gpu.resource_pool_id
  host_system_id             = data.vsphere_host.esx[each.key].id
  datastore_id               = data.vsphere_datastore.vsan.id
  num_cpus                   = 8
  memory                     = 65536
  memory_reservation         = 65536
  pci_device_id              = var.gpus
  guest_id                   = data.vsphere_virtual_machine.template.guest_id
  firmware                   = data.vsphere_virtual_machine.template.firmware
  scsi_type                  = data.vsphere_virtual_machine.template.scsi_type
  wait_for_guest_net_timeout = 0
  extra_config = {
    "pciPassthru.use64bitMMIO"    = "TRUE"
    "pciPassthru.64bitMMIOSizeGB" = "128"
  }
  network_interface { network_id = data.vsphere_network.mgmt.id }
  disk {
    label            = "disk0"
    size             = data.vsphere_virtual_machine.template.disks[0].size
    thin_provisioned = data.vsphere_virtual_machine.template.disks[0].thin_provisioned
  }
  clone { template_uuid = data.vsphere_virtual_machine.template.id }
}
