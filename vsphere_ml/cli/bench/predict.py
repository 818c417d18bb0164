"""`vsml bench predict`: what the wire allows."""

from __future__ import annotations

from typing import Annotated

import typer

from vsphere_ml.cli.options import command
from vsphere_ml.cli.terminal import Answer, Terminal

Model = Annotated[str | None, typer.Option(metavar="NAME", help="A known model, for its number of parameters.")]
Parameters = Annotated[
    float | None, typer.Option(min=1, max=1e15, metavar="N", help="Trained parameters, such as 340e6.")
]
Precision = Annotated[
    str, typer.Option(metavar="fp32|fp16", help="Gradients on the wire; fp16 with Horovod's compression.")
]
Nodes = Annotated[str, typer.Option(metavar="N,...", help="Numbers of nodes, such as 2,4,8 or 1-4.")]
RanksPerNode = Annotated[int, typer.Option("--ranks-per-node", min=1, max=64, metavar="N", help="GPUs of one node.")]
LinkGbit = Annotated[float, typer.Option("--link-gbit", min=0.001, metavar="GBIT", help="Line rate of one NIC.")]
Nics = Annotated[int, typer.Option(min=1, max=64, metavar="N", help="NICs of one node.")]
Mtu = Annotated[int, typer.Option(min=576, max=9216, metavar="BYTES", help="Ethernet MTU.")]
TransportOption = Annotated[
    str, typer.Option("--transport", metavar="tcp|roce|gpudirect", help="What the bytes between nodes go by.")
]
Latency = Annotated[float, typer.Option("--latency-us", min=0, metavar="US", help="Latency of one message.")]
StepMs = Annotated[
    float | None, typer.Option("--step-ms", min=0.001, metavar="MS", help="Step time on one node, without exchange.")
]
Batch = Annotated[int | None, typer.Option(min=1, metavar="N", help="Samples a rank takes in one step.")]
Flops = Annotated[float | None, typer.Option(min=1, metavar="N", help="FLOP/s that one GPU sustains.")]
PerSample = Annotated[
    float | None,
    typer.Option("--flops-per-sample", min=1, metavar="N", help="FLOP of a sample, both passes."),
]
Iterations = Annotated[int | None, typer.Option(min=1, metavar="N", help="Steps of the whole training run.")]
Measured = Annotated[
    float | None,
    typer.Option("--measured-gbytes", min=0.001, metavar="GB", help="A bandwidth in GB/s to hold against the link."),
]


@command
def predict(  # noqa: PLR0917 - options
    _terminal: Terminal,
    model: Model = None,
    parameters: Parameters = None,
    precision: Precision = "fp32",
    nodes: Nodes = "2,3,4,8,16",
    ranks_per_node: RanksPerNode = 1,
    link_gbit: LinkGbit = 100.0,
    nics: Nics = 1,
    mtu: Mtu = 1500,
    transport: TransportOption = "tcp",
    latency_us: Latency = 0.0,
    step_ms: StepMs = None,
    batch: Batch = None,
    flops: Flops = None,
    flops_per_sample: PerSample = None,
    iterations: Iterations = None,
    measured_gbytes: Measured = None,
) -> Answer:
    """Compute what exchanging gradients costs: all-reduce time, bounds of efficiency, hours of a training run.

    Nothing is measured and no cluster is needed. Bounds need a step time: `--step-ms`, or `--batch` with `--flops` and
    `--flops-per-sample`.

    Example: `vsml bench predict --model bert-large --link-gbit 25 --iterations 3000000`
    """
    from vsphere_ml.bench.predict import predict as flow
    from vsphere_ml.bench.predict.arguments import check_finite, job, node_counts
    from vsphere_ml.bench.predict.arguments import transport as known_transport
    from vsphere_ml.cli.views.bench import predict as view

    check_finite(parameters, link_gbit, latency_us, step_ms, flops, flops_per_sample, measured_gbytes)
    wanted = job(
        model=model,
        parameters=parameters,
        gradients=precision,
        ranks_per_node=ranks_per_node,
        step_s=None if step_ms is None else step_ms / 1e3,
        batch=batch,
        flops=flops,
        flops_per_sample=flops_per_sample,
        iterations=iterations,
    )
    link_model = flow.LinkModel(
        line_rate_bits_per_s=link_gbit * 1e9,
        nics=nics,
        transport=known_transport(transport),
        mtu_bytes=mtu,
        latency_s=latency_us / 1e6,
    )
    made = flow.predict(wanted, link_model, node_counts(nodes))
    measured = None if measured_gbytes is None else flow.share(measured_gbytes * 1e9, link_model)
    return Answer(text=view.text(made, measured), data=view.data(made, measured))
