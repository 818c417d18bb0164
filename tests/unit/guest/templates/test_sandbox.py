"""Templates fill in texts: they reach nothing of this machine, and what grows without end is refused."""

from __future__ import annotations

import pytest

from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.model.guest import GuestFacts, Peer
from vsphere_ml.guest.playbooks.fields import Template
from vsphere_ml.guest.templates import render, sandbox

PEERS = tuple(Peer(name=f"node-{at}", address=f"10.0.0.{at}", roce_address=f"10.1.0.{at}/24") for at in range(1, 5))
FACTS = GuestFacts(name="node-1", cluster="train", peers=PEERS, gpus=2, profile="A100-40C", values={"rack": "7"})
VALUES = render.guest_values(FACTS)
ESCAPE = (
    "{% for c in name.__class__.__mro__[-1].__subclasses__() if c.__name__ == '_wrap_close' %}"
    "{{ c.__init__.__globals__['popen']('id').read() }}{% endfor %}"
)


def refused(text: str) -> sandbox.UnsuitableTemplate:
    with pytest.raises(sandbox.UnsuitableTemplate) as raised:
        sandbox.render_template(text, VALUES)
    return raised.value


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "{% for peer in peers %}{{ loop.index }}:{{ peer.name }} {% endfor %}",
            "1:node-1 2:node-2 3:node-3 4:node-4 ",
        ),
        ("{{ peers[0].roce_address.partition('/')[0] }}", "10.1.0.1"),
        ("{{ peers | map(attribute='name') | join(',') }}", "node-1,node-2,node-3,node-4"),
        ("{{ values.rack }}{{ values['rack'] }}{{ values.get('row', '-') }}", "77-"),
        ("{% set half = gpus // 2 %}{{ half * 1024 ** 2 }} {{ 5 % 3 }}", "1048576 2"),
        ("{{ name.upper()[:4] ~ '-' ~ gpus }}", "NODE-2"),
        ("{% if 'A100' in profile and gpus == 2 %}yes{% endif %}", "yes"),
        ("{{ name | quoted }} {{ rack | default('none') }}", '"node-1" none'),
    ],
)
def test_what_fills_in_a_text_is_possible(text: str, wanted: str) -> None:
    assert sandbox.render_template(text, VALUES) == wanted


@pytest.mark.parametrize(
    "text",
    [
        ESCAPE,
        "{{ name['__class__'] }}",
        "{{ peers | map(attribute='__class__') | first }}{{ ''.__class__ }}",
        "{{ name.format(1) }}",
        "{{ '{0.__class__}'.format(name) }}",
        "{{ name | attr('__class__') }}",
        "{{ values.update({'a': 1}) }}",
        "{{ peers[0].__init__ }}",
        "{{ lipsum.__globals__ }}",
        "{{ cycler.__init__ }}",
        "{{ self.__init__ }}",
    ],
)
def test_nothing_of_python_is_reached(text: str) -> None:
    assert refused(text).line == 1


@pytest.mark.parametrize("text", ["{{ 7[:1] }}", "{{ true[1:] }}", "{{ none[:] }}", "{% if -1.5[0:1] %}{% endif %}"])
def test_a_part_of_what_has_none_is_refused_with_its_line_and_without_a_warning(
    text: str, recwarn: pytest.WarningsRecorder
) -> None:
    """Python warns on stderr of such an expression once it is compiled."""
    assert refused(f"\n{text}").line == 2
    assert not recwarn.list


@pytest.mark.parametrize(
    "text",
    [
        "{% include '/etc/passwd' %}",
        "{% extends 'base' %}",
        "{% import 'x' as y %}",
        "{% from 'x' import y %}",
        "{% macro m() %}{% endmacro %}",
        "{% block b %}{% endblock %}",
        "{% filter upper %}{% endfilter %}",
        "{% call m() %}{% endcall %}",
        "{% set x %}{% endset %}",
        "{% for a in peers recursive %}{% endfor %}",
        "{{ name | pprint }}",
        "{{ name is filter }}",
        f"{{{{ 0x{'f' * 4000} }}}}",
        f"{{{{ {'9' * 400} }}}}",
    ],
)
def test_what_templates_do_not_need_is_refused_before_they_are_rendered(text: str) -> None:
    with pytest.raises(sandbox.UnsuitableTemplate) as raised:
        sandbox.parse_template(f"\n{text}")
    assert raised.value.line == 2


@pytest.mark.parametrize(
    "text",
    [
        "{{ 'x' * 10 ** 10 }}",
        "{{ [name] * 10 ** 10 }}",
        "{{ 10 ** 10 ** 10 ** 10 }}",
        "{{ name.ljust(10 ** 9) }}",
        "{{ name | indent(10 ** 9) }}",
        "{{ '%099999999d' % 1 }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for a in range(10 ** 9) %}{% endfor %}",
        "{% set x = 'xxxxxxxx' %}" + "{% set x = x ~ x %}" * 40,
        "{% set x = 'xxxxxxxx' %}" + "{% set x = x + x %}" * 40,
        "{% set x = 'xxxxxxxx' %}" + "{% set x = x.replace('x', x) %}" * 12,
        "{% set x = [name] %}" + "{% set x = x + x %}" * 40,
        "{% set l = range(60000) | list %}{% for a in range(60000) %}{{ l[1:] | length }}{% endfor %}",
        "{% set l = range(60000) | list %}{% for a in range(60000) %}{{ -1 in l }}{% endfor %}",
        "{% for a in range(9000) %}" + "x" * 2000 + "{% endfor %}",
        "{{ " + "(" * 5000,
        "{{ " + "9" * 5000 + " }}",
        "{% for a in peers %}" * 25 + "{% endfor %}" * 25,
        "{{ name }}" * 20_000,
        "{{ a" + ".a" * 300 + " }}",
    ],
)
def test_what_would_take_all_time_or_memory_is_refused(text: str) -> None:
    assert refused(text).why


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{{ name + 1 }}", 1),
        ("\n{{ 1/0 }}", 2),
        ("\n\n{{ gpus | sort }}", 3),
        ("a\n{{ nobody }}", 2),
        ("{{ values.nobody }}", 1),
        ("{{ values.nobody.more }}", 1),
        ("{{ gpus() }}", 1),
        ("{{ name }", 1),
        ("{% for peer in peers %}\n{{ peer.nobody }}{% endfor %}", 2),
    ],
)
def test_every_error_of_a_template_is_a_config_error_with_its_file_and_line(text: str, line: int) -> None:
    with pytest.raises(ConfigError) as raised:
        render.render(Template(text, "mine.j2"), VALUES, "/etc/mine")
    assert raised.value.code == "guest.template"
    assert [(each.file, each.line) for each in raised.value.problems] == [("mine.j2", line)]


def test_a_cluster_of_10_000_nodes_has_its_hosts_file() -> None:
    peers = tuple(Peer(name=f"node-{at}", address="10.0.0.1", roce_address="10.1.0.1/16") for at in range(10_000))
    text = render.render(render.shipped_template("hosts"), {**VALUES, "peers": peers})
    assert text.count("\n") >= 20_000


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("{{ 7[0] ~ 2 }}", []),  # what is wrong with a constant is found where the template is rendered
        ("{{ 'a'['b'] ~ 1 }}", []),
        ("{{ 'a' ~ nobody }}", [1]),
        ("\n{% for loop in peers %}{% endfor %}", [2]),  # found only when it is compiled
    ],
)
def test_the_names_that_a_template_wants_are_found_without_evaluating_it(text: str, lines: list[int]) -> None:
    assert [each.line for each in render.mistakes(Template(text, "mine.j2"), render.KNOWN)] == lines
