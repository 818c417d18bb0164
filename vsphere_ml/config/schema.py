"""The shape of a cluster file: every table, every key. docs/reference/cluster-toml.md is compared with it by a test."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainValidator

from vsphere_ml.config import fields as f
from vsphere_ml.core.model.spec import (
    CloneKind,
    Evacuation,
    FirstBootBy,
    HostConfigKind,
    HostService,
    Latency,
    LoginKey,
    ShellAccess,
    Spread,
)


class FileTable(BaseModel):
    """A table of the file: unknown keys are refused, and no value is bent into another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ClusterTable(FileTable):
    name: f.Label = Field(description="the cluster's name; it marks what vsml makes")
    spread: Annotated[Spread, PlainValidator(f.choice(Spread), json_schema_input_type=Spread)] = Field(
        default=Spread.SPREAD,
        description="`spread`: each node on a host of its own while hosts last; `pack`: fill a host first",
    )
    anti_affinity: bool | None = Field(
        default=None,
        description="make a DRS rule that keeps the nodes on different hosts; default: when nodes are spread",
    )


class Password(FileTable):
    env: f.Environment | None = Field(default=None, description="the environment variable that holds it")
    file: f.Text | None = Field(default=None, description="a file that only you can read, the password its first line")
    keyring: f.Text | None = Field(default=None, description="the keyring's service; the account is `user@server`")


class VCenterTable(FileTable):
    server: f.Server | None = Field(default=None, description="host or host:port")
    username: f.Text | None = Field(default=None, description="who signs in, such as `vsml@vsphere.local`")
    password: Annotated[Password | None, f.WhereTheSecretIs] = Field(
        default=None, description="where the password is: one of `env`, `file`, `keyring`; never the password itself"
    )
    ca_file: f.Text | None = Field(default=None, description="PEM file of the CA that signed the vCenter's certificate")
    thumbprint: f.Thumbprint | None = Field(default=None, description="SHA-256 thumbprint of the vCenter's certificate")
    insecure: bool | None = Field(default=None, description="do not verify the certificate at all")
    lab: f.Text | None = Field(
        default=None, description="the name of a running lab; excludes every other key of this table"
    )


class LocationTable(FileTable):
    datacenter: f.Text | None = Field(default=None, description="name or inventory path")
    cluster: f.Text | None = Field(default=None, description="name or inventory path of the compute cluster")
    hosts: f.HostPatterns | None = Field(
        default=None, description="only these hosts of the cluster: names, ranges or globs"
    )
    folder: f.Text | None = Field(
        default=None, description="VM folder; made when missing; VMs in another one are moved there"
    )
    pool: f.Text | None = Field(
        default=None,
        description="resource pool; default: the cluster's own; VMs in another one are moved to one that is named",
    )
    datastore: f.Text | None = Field(default=None, description="where the VMs' files go")
    storage_policy: f.Text | None = Field(
        default=None,
        description="VM storage policy of the VMs' home and disks, by its name; default: what vCenter gives a clone",
    )


class SourceTable(FileTable):
    template: f.Text | None = Field(
        default=None, description="name or inventory path of a template or VM with an EFI guest"
    )
    library: f.Text | None = Field(
        default=None, description="instead of `template`: the content library that has `item`, by its name"
    )
    item: f.Text | None = Field(
        default=None, description="of `library`: a VM template, or an OVF template, by its name"
    )
    ovf: f.Text | None = Field(
        default=None,
        description="instead of `template`: an .ova file, or an .ovf with its files beside it, of this machine. It, "
        "and an OVF template of a library, is deployed once, to a template of the cluster's own",
    )
    clone: Annotated[CloneKind, PlainValidator(f.choice(CloneKind), json_schema_input_type=CloneKind)] = Field(
        default=CloneKind.FULL, description="`full`, or `linked` to the source's current snapshot"
    )


class GpuTable(FileTable):
    kind: f.GpuKindField | None = Field(
        default=None,
        description="`vgpu` (time-sliced, the default), `mig` (the default of MIG profiles), or `nvlink`: that many "
        "whole GPUs joined by NVLink, as a vendor device group; `passthrough` (fixed DirectPath: a function that vsml "
        "chooses) or `dynamic-directpath` (one that vSphere chooses at power-on)",
    )
    profile: f.Profile | None = Field(
        default=None,
        description="a C-series profile such as `A100-40C` (a whole GPU), `A100-20C` (half of one) or "
        "`A100-3-20C` (a MIG instance); each host's own spelling of it is found",
    )
    device: f.GpuDevice | None = Field(
        default=None,
        description="of DirectPath, instead of a profile: the board by its code such as `A100`, or its PCI ids such as "
        "`10de:20f1`",
    )
    label: f.Text | None = Field(default=None, description="of dynamic DirectPath: the hardware label to ask for")
    count: f.GpuCount | None = Field(default=None, description="GPUs of each node; default 1")


class Nic(FileTable):
    kind: f.NicKindField | None = Field(
        default=None,
        description="`auto` (default): a vendor device group where one fits, else paired with the GPU by vsml; "
        "`device-group`, `sriov`, `passthrough` (a whole function), `pvrdma` (a paravirtual adapter on a distributed "
        "switch), `none`",
    )
    model: f.Model | None = Field(default=None, description="the adapter; default `ConnectX-6 Dx`")
    count: f.NicCount | None = Field(
        default=None,
        description="fast NICs of each node, each of a port of its own and near one of the GPUs; default 1. Several "
        "are paired by vsml: a vendor device group has one",
    )
    port_group: f.Text | None = Field(
        default=None,
        description="network of an SR-IOV function or a PVRDMA adapter; default: that of `network.port_group`",
    )
    address: f.Addresses | None = Field(
        default=None,
        description='`"dhcp"` (default), or static IPv4 addresses of the RoCE interface, given out as those of '
        "`network`; the playbook `roce` sets them",
    )


class NetworkTable(FileTable):
    port_group: f.Text | None = Field(default=None, description="port group of the management NIC (vmxnet3)")
    address: f.Addresses | None = Field(
        default=None,
        description='`"dhcp"` (default), or static: `"10.0.0.11/24"`, `"10.0.0.[11-26]/24"`, or a list; '
        "as many as the block has nodes, given out in their order",
    )
    gateway: f.Ip | None = Field(default=None, description="default gateway of static addresses")
    dns: list[f.Ip] | None = Field(default=None, description="name servers of static addresses")


class NodeKeys(FileTable):
    """What `[defaults]`, `[profile.NAME]` and `[[nodes]]` have in common."""

    cpus: f.Cpus | None = Field(default=None, description="virtual CPUs; should fit one NUMA node")
    memory: f.Memory | None = Field(default=None, description="memory, such as `64GiB`; all of it is reserved")
    disk: f.Disk | None = Field(
        default=None, description="the first disk grows to this size, 62 TiB at most; it never shrinks"
    )
    hardware_version: f.HardwareVersion | None = Field(
        default=None, description="virtual hardware version such as `20`; default: the least the devices need"
    )
    latency: Annotated[Latency | None, PlainValidator(f.choice(Latency), json_schema_input_type=Latency)] = Field(
        default=None, description="latency sensitivity, `normal` (default) or `high`; high also reserves the CPUs"
    )
    mmio_gib: f.Mmio | None = Field(
        default=None,
        description="64-bit MMIO space in GiB, a power of two, 32768 at most; default: GPU × count by NVIDIA's table",
    )
    peer_to_peer: bool | None = Field(
        default=None, description="allow peer-to-peer traffic between the VM's PCI devices (ACS relaxed); default true"
    )
    numa: f.Numa | None = Field(
        default=None, description='`"auto"` (default): the NUMA node of GPU and NIC; or a node\'s number'
    )
    host: f.Text | None = Field(default=None, description="every node of the block goes to this host")
    gpu: GpuTable | None = Field(default=None, description="the GPUs of each node")
    nic: Nic | None = Field(default=None, description="the fast NIC of each node")
    network: NetworkTable | None = Field(default=None, description="the management NIC of each node")
    extra_config: f.ExtraConfig | None = Field(
        default=None,
        description="more advanced settings of the VM, as texts; not those that other keys of this file decide",
    )


class Nodes(NodeKeys):
    name: f.Names = Field(
        description='`"node-[01-16]"`, a list of names, or with `count` a pattern such as `"node-{n:02}"`'
    )
    count: f.Count | None = Field(default=None, description="how many nodes a pattern with `{n}` names, from 1")
    use: list[f.Text] | None = Field(
        default=None,
        description="profiles by name, merged left to right, the right one winning; this block's keys win over all",
    )
    hosts: f.Placing | None = Field(
        default=None,
        description="hosts dealt out in turn: the first node to the first host, and round again; the number of nodes "
        'must be a multiple of theirs. Or a table, `{ node-01 = "esx-03" }`',
    )


class Jump(FileTable):
    host: f.Host = Field(description="name or address of the jump host")
    port: f.Port | None = Field(default=None, description="its SSH port; default 22")
    user: f.Text | None = Field(default=None, description="who signs in there; default `root`")
    key_file: f.Text | None = Field(
        default=None, description="private key file for it; default: `key_file` of the guests, else the SSH agent"
    )
    fingerprint: f.Fingerprint | None = Field(
        default=None, description="`SHA256:…` of its host key, as `ssh-keygen -l` prints it; needed the first time"
    )


class GuestTable(FileTable):
    user: f.Text | None = Field(default=None, description="who signs in to the guests; default `ubuntu`")
    port: f.Port | None = Field(default=None, description="SSH port; default 22")
    first_boot: Annotated[
        FirstBootBy | None, PlainValidator(f.choice(FirstBootBy), json_schema_input_type=FirstBootBy)
    ] = Field(
        default=None,
        description="what gives a new guest its name, its address and its user: `cloud-init` (default where there is a "
        "`[guest]`); `customization`: vCenter, through VMware Tools, name and address alone; `none`: the template has "
        "all of it",
    )
    customization_spec: f.Text | None = Field(
        default=None,
        description="with `customization`: a specification that vCenter has by this name; default: Linux preparation",
    )
    domain: f.Domain | None = Field(
        default=None, description="with `customization`: the guests' domain; default `localdomain`"
    )
    key: Annotated[LoginKey | None, PlainValidator(f.choice(LoginKey), json_schema_input_type=LoginKey)] = Field(
        default=None,
        description="whose key signs in: `cluster` (a pair of the cluster's own, made and kept on this machine; "
        "default with cloud-init, which brings its public half to the guests), or `agent` (the keys of the SSH agent)",
    )
    key_file: f.Text | None = Field(default=None, description="private key file without a passphrase, instead of `key`")
    sudo_password: Annotated[Password | None, f.WhereTheSecretIs] = Field(
        default=None, description="where the password for `sudo` is, when it asks for one; not needed for `root`"
    )
    host_keys: f.HostKeysField | None = Field(
        default=None,
        description="who vouches for a guest's SSH host key: `published` (default: the guest writes its keys to "
        "`guestinfo.vsml.hostkeys`, and vCenter hands them over), `pinned` (only keys pinned before), "
        '`trust-first-use`, or a table of fingerprints, `{ node-01 = "SHA256:…" }`',
    )
    jump: Jump | None = Field(default=None, description="the host through which the guests are reached")
    playbooks: f.Playbooks | None = Field(
        default=None,
        description="what `vsml configure` makes of the guests, in order: names of playbooks that ship, such as "
        "`base`, or paths that end in `.toml`",
    )
    settings: dict[str, str] | None = Field(default=None, description="values that playbooks ask for, as texts")
    secrets: dict[str, Annotated[Password, f.WhereTheSecretIs]] | None = Field(
        default=None,
        description="where each secret is that playbooks ask for: one of `env`, `file` (all of it), `keyring`",
    )


class HostsTable(FileTable):
    access: Annotated[ShellAccess, PlainValidator(f.choice(ShellAccess), json_schema_input_type=ShellAccess)] = Field(
        default=ShellAccess.SSH,
        description="`ssh` (default where this table is), or `none`: what the vSphere API cannot do is left to you, "
        "and `vsml enable-ats` prints what to type",
    )
    user: f.Text | None = Field(default=None, description="who signs in to the hosts; default `root`")
    port: f.Port | None = Field(default=None, description="SSH port; default 22")
    key_file: f.Text | None = Field(
        default=None,
        description="private key file without a passphrase; default: the password, else the keys of the SSH agent",
    )
    password: Annotated[Password | None, f.WhereTheSecretIs] = Field(
        default=None, description="where the hosts' password is: one of `env`, `file`, `keyring`"
    )
    host_keys: f.EsxHostKeysField | None = Field(
        default=None,
        description="who vouches for a host's SSH host key: `pinned` (default: only keys pinned before), "
        '`trust-first-use`, or a table of fingerprints, `{ "esx-01.example.com" = "SHA256:…" }`',
    )
    addresses: dict[str, f.Server] | None = Field(
        default=None, description="where a host answers SSH, `host` or `host:port`; default: its name in vCenter"
    )
    jump: Jump | None = Field(default=None, description="the host through which the hosts are reached")
    service: Annotated[HostService, PlainValidator(f.choice(HostService), json_schema_input_type=HostService)] = Field(
        default=HostService.LEAVE,
        description="where a host's SSH service is stopped: `leave` it so (default), or `start` it for as long as it "
        "takes and stop it again",
    )


class Roce(FileTable):
    mtu: f.Mtu | None = Field(
        default=None,
        description="MTU (bytes) that the distributed switch of the fast NICs is to have at least; default: the "
        "setting `roce_mtu` of the guests, else 9000",
    )
    raise_mtu: bool = Field(
        default=False,
        description="`vsml provision` may raise a switch's MTU, which reaches all of its port groups; without it, a "
        "switch with less is a finding",
    )
    pfc_priority: f.Priority | None = Field(
        default=None,
        description="the one priority that priority flow control pauses on the hosts' ConnectX (`pfctx` and `pfcrx` of "
        "their driver), such as `3`; without it, nobody looks",
    )
    dscp: f.Dscp | None = Field(
        default=None,
        description="the DSCP that the hosts' RoCE traffic has, and that their NICs go by (`trust_state=2`, "
        "`dscp_force`), such as `26`, and that benchmarks mark theirs with; without it, nobody looks",
    )
    ecn: bool | None = Field(
        default=None,
        description="whether the hosts' NICs answer congestion marks (`ecn` of their driver); without it, nobody looks",
    )


class HostConfigTable(FileTable):
    kinds: (
        list[Annotated[HostConfigKind, PlainValidator(f.choice(HostConfigKind), json_schema_input_type=HostConfigKind)]]
        | None
    ) = Field(
        default=None,
        description="what the plan may change on hosts so that they take the nodes: `graphics` (Shared Direct), "
        "`sriov` (virtual functions), `passthrough` (of GPUs and NIC ports), `mig` (over SSH, by `[hosts]`), "
        "`roce` (the NIC drivers' options that `[roce]` asks for), `pvrdma` (the VMkernel adapter's tag and the "
        "firewall rule); default: nothing, and the plan says what to type",
    )
    virtual_functions: f.VirtualFunctions | None = Field(
        default=None,
        description="how many virtual functions a port gets that is to hand some out; default: as many as nodes need",
    )
    evacuate: Annotated[Evacuation, PlainValidator(f.choice(Evacuation), json_schema_input_type=Evacuation)] | None = (
        Field(
            default=None,
            description="how a host is emptied before a reboot, also by `vsml enable-ats`: `shut-down` (VMs are shut "
            "down and powered on again; default), `drs` (DRS migrates VMs of others, the cluster's own are shut down), "
            "`refuse` (a host where VMs run is not touched); vCLS is left to vCenter",
        )
    )


class ClusterFile(FileTable):
    cluster: ClusterTable = Field(description="the cluster as a whole")
    vcenter: VCenterTable | None = Field(
        default=None, description="the vCenter; what is not given comes from the environment"
    )
    location: LocationTable | None = Field(
        default=None, description="where in the inventory the VMs go; what is not given must be the only one there is"
    )
    source: SourceTable = Field(description="what the VMs are cloned from")
    defaults: NodeKeys | None = Field(default=None, description="node keys that hold for every node")
    profile: dict[str, NodeKeys] | None = Field(default=None, description="named node keys, composed with `use`")
    nodes: list[Nodes] = Field(description="the nodes, one `[[nodes]]` block for those that are alike")
    guest: GuestTable | None = Field(
        default=None, description="how the guests are entered, and what `vsml configure` makes of them"
    )
    roce: Roce | None = Field(default=None, description="what the network under the fast NICs is to be")
    hosts: HostsTable | None = Field(
        default=None, description="how ESXi hosts are entered for what the vSphere API cannot do: NIC firmware, MIG"
    )
    host_config: HostConfigTable | None = Field(
        default=None, description="what `vsml provision` may change on ESXi hosts so that they take the nodes"
    )


def make_json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a cluster file, for editors; what keys mean together only `vsml check` says."""
    made = _without_null(ClusterFile.model_json_schema())
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "$id": "urn:vsml:cluster", **made, "title": "vsml's cluster file"}


def _without_null(value: Any) -> Any:
    """Return a schema without null, which no TOML has: where it was one of two, an editor says what is wrong inside."""
    if isinstance(value, list):
        return [_without_null(each) for each in value]
    if not isinstance(value, dict):
        return value
    clean = {key: _without_null(each) for key, each in value.items() if not (key == "default" and each is None)}
    left = [each for each in clean.get("anyOf", ()) if each != {"type": "null"}]
    if len(left) == 1:
        del clean["anyOf"]
        return left[0] | clean
    return clean | ({"anyOf": left} if left else {})
