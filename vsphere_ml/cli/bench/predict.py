"""`vsml bench predict`: what the link allows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.predict.training_math import Optimizer, TrainingMath
from vsphere_ml.cli import completion
from vsphere_ml.cli.bench.run_options import Gradients
from vsphere_ml.cli.options import command, option_group
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.bench.predict.gpu_memory import MemoryNeed
    from vsphere_ml.bench.predict.predict import LinkModel, Prediction, TrainingModel
    from vsphere_ml.bench.predict.roofline import Roofline
    from vsphere_ml.cli.views.bench.predict import PredictionMore
    from vsphere_ml.core.codec import Extended


@option_group
class _ModelOptions:
    """What is trained, and how fast without exchange."""

    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="A known model, for its number of parameters.", autocompletion=completion.models
        ),
    ] = None
    parameters: Annotated[
        float | None, typer.Option(min=1, max=1e15, metavar="N", help="Trained parameters, such as 340e6.")
    ] = None
    precision: Annotated[
        Gradients, typer.Option(metavar="fp32|fp16", help="Gradients on the wire; fp16 with Horovod's compression.")
    ] = Gradients.FP32
    ranks_per_node: Annotated[
        int, typer.Option("--ranks-per-node", min=1, max=64, metavar="N", help="GPUs of one node.")
    ] = 1
    step_ms: Annotated[
        float | None,
        typer.Option("--step-ms", min=0.001, metavar="MS", help="Step time on one node, without exchange."),
    ] = None
    batch: Annotated[int | None, typer.Option(min=1, metavar="N", help="Samples a rank takes in one step.")] = None
    flops: Annotated[float | None, typer.Option(min=1, metavar="N", help="FLOP/s that one GPU sustains.")] = None
    flops_per_sample: Annotated[
        float | None,
        typer.Option("--flops-per-sample", min=1, metavar="N", help="FLOP of a sample, both passes."),
    ] = None
    iterations: Annotated[int | None, typer.Option(min=1, metavar="N", help="Steps of the whole training run.")] = None
    epochs: Annotated[
        int | None, typer.Option(min=1, max=10**6, metavar="N", help="Epochs of the run, of --samples each.")
    ] = None
    samples: Annotated[
        int | None, typer.Option(min=1, max=10**15, metavar="N", help="Samples of the training data.")
    ] = None

    def training(self) -> TrainingModel:
        """Return the training run."""
        from vsphere_ml.bench.predict.arguments import base_step_s, check_finite, parameter_count, sample_count
        from vsphere_ml.bench.predict.predict import TrainingModel

        check_finite(self.parameters, self.step_ms, self.flops, self.flops_per_sample)
        known_s = None if self.step_ms is None else self.step_ms / 1e3
        return TrainingModel(
            parameters=parameter_count(self.model, self.parameters),
            gradients=self.precision,
            ranks_per_node=self.ranks_per_node,
            base_step_s=known_s or base_step_s(self.batch, self.flops, self.flops_per_sample),
            iterations=self.iterations,
            flops=self.flops,
            flops_per_sample=self.flops_per_sample,
            batch=self.batch,
            samples=sample_count(self.epochs, self.samples),
        )


@option_group
class _LinkOptions:
    """The way between nodes."""

    link_gbit: Annotated[
        float, typer.Option("--link-gbit", min=0.001, metavar="GBIT", help="Line rate of one NIC.")
    ] = 100.0
    nics: Annotated[int, typer.Option(min=1, max=64, metavar="N", help="NICs of one node.")] = 1
    mtu: Annotated[int, typer.Option(min=576, max=9216, metavar="BYTES", help="Ethernet MTU.")] = 1500
    transport: Annotated[
        Transport,
        typer.Option("--transport", metavar="tcp|pvrdma|roce|gpudirect", help="What the bytes between nodes go by."),
    ] = Transport.TCP
    latency_us: Annotated[float, typer.Option("--latency-us", min=0, metavar="US", help="Latency of one message.")] = (
        0.0
    )

    def model(self) -> LinkModel:
        """Return it with its rate in bit/s."""
        from vsphere_ml.bench.predict.arguments import check_finite
        from vsphere_ml.bench.predict.predict import LinkModel

        check_finite(self.link_gbit, self.latency_us)
        return LinkModel(
            line_rate_bits_per_s=self.link_gbit * 1e9,
            nics=self.nics,
            transport=self.transport,
            mtu_bytes=self.mtu,
            latency_s=self.latency_us / 1e6,
        )


@option_group
class _MemoryOptions:
    """Whether it fits a vGPU."""

    vgpu: Annotated[
        str,
        typer.Option(
            "--vgpu",
            metavar="PROFILE",
            help="Say whether a rank fits this vGPU, such as A100-40C.",
            autocompletion=completion.vgpu_profiles,
        ),
    ] = ""
    optimizer: Annotated[Optimizer, typer.Option(help="Optimizer, for what it keeps in GPU memory.")] = (
        Optimizer.MOMENTUM
    )
    math: Annotated[TrainingMath, typer.Option(help="Computing in fp32, or in mixed precision.")] = TrainingMath.FP32
    activation_mbytes: Annotated[
        float | None,
        typer.Option("--activation-mbytes", min=0, metavar="MB", help="Activations of one rank's step, in MB."),
    ] = None

    def need(self, parameters: int) -> MemoryNeed | None:
        """Return what a rank needs, where a vGPU is named; ConfigError `bench.no-profile` for an unknown one."""
        from vsphere_ml.bench.predict.arguments import check_finite
        from vsphere_ml.bench.predict.gpu_memory import find_need

        check_finite(self.activation_mbytes)
        if not self.vgpu:
            return None
        activations = None if self.activation_mbytes is None else round(self.activation_mbytes * 1e6)
        return find_need(parameters, self.vgpu, self.optimizer, self.math, activations)


@option_group
class _ComparisonOptions:
    measured_gbytes: Annotated[
        float | None,
        typer.Option(
            "--measured-gbytes", min=0.001, metavar="GB", help="A bandwidth in GB/s to hold against the link."
        ),
    ] = None
    path: Annotated[
        str,
        typer.Option(
            "--path",
            metavar="NAME",
            help="Time over one path: nvlink3, pcie4, hbm2e, upi, 100gbe; or all.",
            autocompletion=completion.data_paths,
        ),
    ] = ""
    roofline: Annotated[
        str,
        typer.Option(
            "--roofline",
            metavar="GPU",
            help="Roofline of this GPU: v100, a100-40, a100-80-sxm, h100-sxm.",
            autocompletion=completion.roofline_gpus,
        ),
    ] = ""
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Draw the roofline on an HTML page.")] = (
        None
    )


@command
def predict(
    _terminal: Terminal,
    *,
    job: _ModelOptions,
    nodes: Annotated[str, typer.Option(metavar="N,...", help="Numbers of nodes, such as 2,4,8 or 1-4.")] = "2,3,4,8,16",
    link: _LinkOptions,
    memory: _MemoryOptions,
    compared: _ComparisonOptions,
) -> Answer["Extended[Prediction, PredictionMore]"]:
    """Compute what exchanging gradients costs: all-reduce time, bounds of efficiency, hours of a training run.

    Nothing is measured and no cluster is needed. Bounds need a step time: `--step-ms`, or `--batch` with `--flops` and
    `--flops-per-sample`.

    Example: `vsml bench predict --model bert-large --link-gbit 25 --iterations 3000000`
    """
    from vsphere_ml.bench.predict import predict as flow
    from vsphere_ml.bench.predict.arguments import check_finite, node_counts
    from vsphere_ml.bench.predict.data_paths import cross, find_paths
    from vsphere_ml.bench.predict.roofline import find_roofline
    from vsphere_ml.cli.views.bench import predict as view

    check_finite(compared.measured_gbytes)
    model = link.model()
    made = flow.predict(job.training(), model, node_counts(nodes))
    measured = None if compared.measured_gbytes is None else flow.share(compared.measured_gbytes * 1e9, model)
    crossings = cross(made.size_bytes, find_paths(compared.path)) if compared.path else ()
    needed = memory.need(made.job.parameters)
    roof = find_roofline(compared.roofline, memory.math, made) if compared.roofline else None
    if compared.html is not None:
        _draw(roof, compared.html)
    shown = view.Extras(crossings=crossings, memory=needed, roofline=roof)
    return Answer(text=view.text(made, measured, shown), data=view.data(made, measured, shown))


def _draw(roof: Roofline | None, html: Path) -> None:
    """Write the page; ConfigError `usage` when nothing is to be drawn."""
    from vsphere_ml.bench.report.roofline_page import page
    from vsphere_ml.cli.bench.files import write
    from vsphere_ml.core.errors import ConfigError

    if roof is None:
        raise ConfigError("--html draws a roofline, and none is asked for", code="usage", hint="--roofline a100-40")
    write(html, page(roof))
