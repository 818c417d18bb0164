"""esxcli over the vSphere API: no SSH, no command line on the host.

vCenter offers it as a method that pyvmomi (9.1) does not declare; ESXi answers in XML of its own. An error of the
command is no SOAP fault: it comes inside the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from pyVmomi import VmomiSupport, vim

from vsphere_ml.vsphere.connection.required import require_result, unexpected_answer
from vsphere_ml.vsphere.inventory.collect import reference

if TYPE_CHECKING:
    from vsphere_ml.vsphere.connection.session import Session

_types: Any = VmomiSupport
_VERSION, _NAME = "vim.version.version1", "vmodl.reflect.ManagedMethodExecuter"
_OPTIONAL: int = _types.F_OPTIONAL


class EsxcliError(Exception):
    """What the command itself answered instead of a result, in its own words."""


def run(session: Session, host: Any, command: str, **options: str) -> list[dict[str, str]]:
    """Return the rows that an esxcli command lists, by column; none for one that only does something.

    `command` is its words with dots, `system.settings.kernel.list`. Raises EsxcliError, VSphereError
    `vcenter.unexpected-output` for an answer that is no XML, and pyvmomi's faults when the host cannot be asked this
    way.
    """
    group = command.rpartition(".")[0].replace(".", "-")
    arguments = [_argument(name, value) for name, value in options.items()]
    moid, method = f"ha-cli-handler-{group}", f"vim.EsxCLI.{command}"

    def call() -> Any:
        stub = session.stub
        answer = stub.InvokeMethod(host, _HOST.RetrieveManagedMethodExecuter.info, ())
        executer = require_result(answer, host, "RetrieveManagedMethodExecuter")
        return stub.InvokeMethod(executer, _EXECUTER.ExecuteSoap.info, (moid, "urn:vim25/5.0", method, arguments))

    reads = command.rpartition(".")[2] in {"list", "get"}
    answer = session.read(call) if reads else session.write(call)
    if answer is None:
        return []
    if answer.fault is not None:
        raise EsxcliError(_error(answer.fault))
    try:
        return rows(answer.response or "")
    except ET.ParseError as error:
        raise unexpected_answer(
            f"what `{command}` answers is cut off, or no XML",
            reference(host),
            "run the command again; when it stays so, compare with the same command in the host's own shell",
        ) from error


def _argument(name: str, value: str) -> Any:
    made = _types.GetVmodlType(f"{_NAME}.SoapArgument")
    return made(name=name, val=f'<{name} xmlns="urn:vim25">{escape(value)}</{name}>')


def rows(response: str) -> list[dict[str, str]]:
    """Return the objects of an answer such as `<obj><DataObject><Name>..</Name></DataObject></obj>`.

    A column that is there several times has its texts with commas; what `get` answers is one object, without a list.
    """
    if not response:
        return []
    root = ET.fromstring(response)  # noqa: S314 - from the vCenter we are signed in to
    listed = [row for row in root if len(row)]
    return [_columns(row) for row in listed or ([root] if len(root) else [])]


def _columns(row: ET.Element) -> dict[str, str]:
    found: dict[str, str] = {}
    for cell in row:
        name, text = _local(cell.tag), (cell.text or "").strip()
        found[name] = f"{found[name]}, {text}" if name in found else text
    return found


def _error(fault: Any) -> str:
    """Return the command's sentence: it is in the detail's errMsg."""
    try:
        detail = ET.fromstring(fault.faultDetail or "")  # noqa: S314
        said = [each.text for each in detail.iter() if _local(each.tag) == "errMsg" and each.text]
    except ET.ParseError:
        said = []
    return " ".join((said[0] if said else fault.faultMsg or "no reason given").split())


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _declare() -> None:
    fields = [("name", "string", _VERSION, 0), ("val", "string", _VERSION, 0)]
    _data("SoapArgument", fields)
    _data("SoapFault", [("faultMsg", "string", _VERSION, 0), ("faultDetail", "string", _VERSION, _OPTIONAL)])
    _data(
        "SoapResult",
        [("response", "string", _VERSION, _OPTIONAL), ("fault", f"{_NAME}.SoapFault", _VERSION, _OPTIONAL)],
    )
    parameters = (
        ("moid", "string", _VERSION, 0, None),
        ("version", "string", _VERSION, 0, None),
        ("method", "string", _VERSION, 0, None),
        ("argument", f"{_NAME}.SoapArgument[]", _VERSION, _OPTIONAL, None),
    )
    result = (_OPTIONAL, f"{_NAME}.SoapResult", f"{_NAME}.SoapResult")
    execute = ("executeSoap", "ExecuteSoap", _VERSION, parameters, result, None, None)
    _types.CreateManagedType(_NAME, "ReflectManagedMethodExecuter", "vmodl.ManagedObject", _VERSION, None, [execute])
    # govmomi's simulator calls the executer's type by this name in references.
    _types.CreateManagedType(f"{_NAME}Alias", "ManagedMethodExecuter", _NAME, _VERSION, None, None)
    retrieve = (
        "retrieveManagedMethodExecuter",
        "RetrieveManagedMethodExecuter",
        _VERSION,
        (),
        (_OPTIONAL, _NAME, _NAME),
        None,
        None,
    )
    _types.CreateManagedType("vim.HostSystemEsxcli", "HostSystemEsxcli", "vim.HostSystem", _VERSION, None, [retrieve])


def _data(name: str, fields: list[tuple[Any, ...]]) -> None:
    wsdl = f"ReflectManagedMethodExecuter{name}"
    _types.CreateDataType(f"{_NAME}.{name}", wsdl, "vmodl.DynamicData", _VERSION, fields)


if not hasattr(vim, "HostSystemEsxcli"):
    _declare()
_EXECUTER: Any = _types.GetVmodlType(_NAME)
_HOST: Any = _types.GetVmodlType("vim.HostSystemEsxcli")
