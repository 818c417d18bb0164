"""OVF packages as vSphere exports them: a descriptor, a disk, a manifest."""

from __future__ import annotations

import hashlib
import io
import struct
import tarfile
from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.model.inventory import NetworkRef, OvfPackage
from vsphere_ml.core.plan.changes import DeployTemplate
from vsphere_ml.core.units import gib

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.core.plan.changes import CloneVm

_SECTOR = 512
_STREAM_OPTIMIZED = 1 << 16 | 1 << 17  # compressed grains, markers
_DISK_DESCRIPTOR = """\
# Disk DescriptorFile
version=1
CID=5eed5eed
parentCID=ffffffff
createType="streamOptimized"
RDONLY 20971520 SPARSE "ubuntu-disk1.vmdk"
ddb.adapterType = "lsilogic"
"""


def _disk() -> bytes:
    """Return the beginning of a stream-optimized VMDK of 10 GiB (VMware, Virtual Disk Format 5.0), and zeros."""
    header = struct.pack(
        "<4sIIQQQQIQQQB4sH", b"KDMV", 3, _STREAM_OPTIMIZED, 20971520, 128, 1, 1, 512, 0, 0, 128, 0, b"\n \r\n", 1
    )
    return header.ljust(_SECTOR, b"\0") + _DISK_DESCRIPTOR.encode().ljust(_SECTOR, b"\0") + bytes(300_000)


DISK = _disk()
_DESCRIPTOR = """\
<?xml version="1.0" encoding="UTF-8"?>
<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1"
 xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData"
 xmlns:vssd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_VirtualSystemSettingData"
 xmlns:vmw="http://www.vmware.com/schema/ovf">
  <References><File ovf:id="file1" ovf:href="{disk}" ovf:size="{size}"/></References>
  <DiskSection><Info>Disks</Info><Disk ovf:diskId="vmdisk1" ovf:fileRef="file1" ovf:capacity="{capacity}"
   ovf:capacityAllocationUnits="byte * 2^30"
   ovf:format="http://www.vmware.com/interfaces/specifications/vmdk.html#streamOptimized"/></DiskSection>
  <NetworkSection><Info>Networks</Info><Network ovf:name="VM Network"/></NetworkSection>
  <VirtualSystem ovf:id="ubuntu">
    <Info>A cloud image</Info><Name>ubuntu</Name>
    <OperatingSystemSection ovf:id="94" vmw:osType="ubuntu64Guest"><Info>The guest</Info></OperatingSystemSection>
    <VirtualHardwareSection><Info>Hardware</Info>
      <System><vssd:ElementName>Virtual Hardware Family</vssd:ElementName><vssd:InstanceID>0</vssd:InstanceID>
       <vssd:VirtualSystemIdentifier>ubuntu</vssd:VirtualSystemIdentifier>
       <vssd:VirtualSystemType>vmx-{version}</vssd:VirtualSystemType></System>
      <Item><rasd:AllocationUnits>hertz * 10^6</rasd:AllocationUnits><rasd:ElementName>CPUs</rasd:ElementName>
       <rasd:InstanceID>1</rasd:InstanceID><rasd:ResourceType>3</rasd:ResourceType>
       <rasd:VirtualQuantity>2</rasd:VirtualQuantity></Item>
      <Item><rasd:AllocationUnits>byte * 2^20</rasd:AllocationUnits><rasd:ElementName>memory</rasd:ElementName>
       <rasd:InstanceID>2</rasd:InstanceID><rasd:ResourceType>4</rasd:ResourceType>
       <rasd:VirtualQuantity>2048</rasd:VirtualQuantity></Item>
      <Item><rasd:ElementName>SCSI</rasd:ElementName><rasd:InstanceID>3</rasd:InstanceID>
       <rasd:ResourceSubType>VirtualSCSI</rasd:ResourceSubType><rasd:ResourceType>6</rasd:ResourceType></Item>
      <Item><rasd:AddressOnParent>0</rasd:AddressOnParent><rasd:ElementName>disk</rasd:ElementName>
       <rasd:HostResource>ovf:/disk/vmdisk1</rasd:HostResource><rasd:InstanceID>4</rasd:InstanceID>
       <rasd:Parent>3</rasd:Parent><rasd:ResourceType>17</rasd:ResourceType></Item>
      <Item><rasd:AddressOnParent>7</rasd:AddressOnParent><rasd:AutomaticAllocation>true</rasd:AutomaticAllocation>
       <rasd:Connection>VM Network</rasd:Connection><rasd:ElementName>NIC</rasd:ElementName>
       <rasd:InstanceID>5</rasd:InstanceID><rasd:ResourceSubType>VmxNet3</rasd:ResourceSubType>
       <rasd:ResourceType>10</rasd:ResourceType></Item>
      <vmw:Config ovf:required="false" vmw:key="firmware" vmw:value="{firmware}"/>
    </VirtualHardwareSection>
  </VirtualSystem>
</Envelope>
"""


def descriptor(
    *, firmware: str = "efi", version: int = 20, capacity: int = 10, disk: str = "ubuntu-disk1.vmdk"
) -> bytes:
    """Return a descriptor of a VM with one disk of so many GiB."""
    text = _DESCRIPTOR.format(disk=disk, size=len(DISK), capacity=capacity, version=version, firmware=firmware)
    return text.encode()


def package(folder: Path, content: bytes | None = None, *, disk: bytes = DISK, manifest: bool = True) -> Path:
    """Write a package's files into a folder and return its descriptor."""
    folder.mkdir(exist_ok=True)
    files = {"ubuntu.ovf": content or descriptor(), "ubuntu-disk1.vmdk": disk}
    if manifest:
        sums = {name: hashlib.sha256(text).hexdigest() for name, text in files.items()}
        files["ubuntu.mf"] = "".join(f"SHA256({name})= {digest}\n" for name, digest in sums.items()).encode()
    for name, text in files.items():
        (folder / name).write_bytes(text)
    return folder / "ubuntu.ovf"


def archive(folder: Path, *names: str) -> Path:
    """Pack a package's files, in the order that OVA has, and return the archive."""
    path = folder / "ubuntu.ova"
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as packed:
        for name in names or ("ubuntu.ovf", "ubuntu.mf", "ubuntu-disk1.vmdk"):
            text = (folder / name).read_bytes()
            member = tarfile.TarInfo(name)
            member.size = len(text)
            packed.addfile(member, io.BytesIO(text))
    return path


# What vsml reads of such a package.
PACKAGE = OvfPackage(
    name="ubuntu.ova", digest="5eed" * 16, hardware_version=19, cpus=2, memory=gib(2), disk=gib(10), firmware="efi"
)


def deployment(clone: CloneVm, name: str = "train-template-5eed5eed5eed") -> DeployTemplate:
    """Return the deployment of a template where a clone of it goes."""
    return DeployTemplate(
        name=name,
        marks=replace(clone.marks, node=name),
        package=PACKAGE,
        host=clone.host,
        host_name=clone.host_name,
        pool=clone.pool,
        datastore=clone.datastore,
        datastore_name=clone.datastore_name,
        folder=clone.folder,
        network=NetworkRef("network-1"),
        network_name="vm-mgmt",
    )
