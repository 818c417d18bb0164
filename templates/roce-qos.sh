#!/bin/sh
# Lossless RoCE on the fast NIC. Kept by vsml, run at every boot by vsml-roce-qos.service.
set -eu
nic="$({{ interface }})"
test -n "$nic" || { echo "no RoCE interface" >&2; exit 1; }
mlnx_qos -i "$nic" --trust dscp
mlnx_qos -i "$nic" --pfc {{ pfc }}
{% if ecn %}
echo 1 >"/sys/class/net/$nic/ecn/roce_np/enable/{{ priority }}"
echo 1 >"/sys/class/net/$nic/ecn/roce_rp/enable/{{ priority }}"
{% endif %}
