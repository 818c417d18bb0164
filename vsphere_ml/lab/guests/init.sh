# One boot of a guest: its own disk over the image, cloud-init's part, sshd. Pid 1 in the guest.
# Arguments: the VM's folder, its disk, the image's root.
set -eu
at=$1 disk=$2 image=$3
first=
if [ ! -d "$disk/upper" ]; then
    first=yes
    mkdir "$disk/upper" "$disk/work" "$disk/root"
fi
# Lower layers are never written.
mount -t overlay overlay -o "lowerdir=$image,upperdir=$disk/upper,workdir=$disk/work" "$disk/root"
cd "$disk/root"
if [ "$first" ]; then
    mkdir -p .old boot dev etc/ssh home media mnt opt/vsml-lab proc root run srv sys tmp \
        usr/local/bin usr/local/sbin usr/local/lib usr/local/share var/lib/vsml-lab
    chmod 700 root
    rm -rf etc/apt/sources.list etc/apt/sources.list.d etc/apt/apt.conf.d/*proxy* var/lib/apt/lists
    mkdir -p etc/apt/sources.list.d var/lib/apt/lists/partial
    # What a package brings is started by its unit; without systemd its maintainer's script would take that of SysV.
    printf '#!/bin/sh\nexit 101\n' >usr/sbin/policy-rc.d
    chmod 755 usr/sbin/policy-rc.d
    cp "$at/programs/"* usr/local/bin/
    chmod 755 usr/local/bin/*
    # Every distribution's kernel has a driver of ConnectX; OFED's takes its place only where it was built.
    mkdir -p usr/lib/vsml-lab/modules
    printf 'filename: /lib/modules/%s/kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko\nsrcversion: %s\n' \
        "$(uname -r)" 1B0C1B0C1B0C1B0C1B0C1B0 >usr/lib/vsml-lab/modules/mlx5_core
fi
# A proc of its own hides the machine's processes; what /proc/sys holds is the machine's, so it cannot be written.
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount --bind proc/sys/net proc/sys/net && mount -o remount,bind,rw proc/sys/net
mount --bind "$at/boot_id" proc/sys/kernel/random/boot_id
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=755 devices dev
for each in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0; do
    name=${each%%:*} number=${each#*:}
    mknod -m 666 "dev/$name" c "${number%:*}" "${number#*:}"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs -o mode=1777 shm dev/shm
mount -t tmpfs -o mode=755 run run
mount -t tmpfs -o mode=1777 tmp tmp
mkdir run/sshd run/vsml-lab run/lock
mount --bind "$at/tools" run/vsml-lab
if [ -d "$at/../../packages" ]; then
    mount --bind "$at/../../packages" opt/vsml-lab
    mount -o remount,bind,ro opt/vsml-lab
fi
if [ -d "$at/../../runtime" ]; then
    mkdir -p opt/vsml-lab-runtime
    mount --bind "$at/../../runtime" opt/vsml-lab-runtime
    mount -o remount,bind,ro opt/vsml-lab-runtime
fi
pivot_root . .old
cd /
umount -l /.old
ip link set lo up
# A fast adapter looks like a ConnectX to those who read /sys: its driver, its PCI slot, and the switches of congestion
# marking, which only a physical function has: firmware lets no virtual one ask for the port's settings (Linux,
# drivers/infiniband/hw/mlx5/cong.c: cc_query_allowed, cc_modify_allowed).
slot=3
for each in /sys/class/net/eth[1-9]*; do
    [ -e "$each" ] || continue
    slot=$((slot + 1)) # the stand-in of lspci counts so too
    over=/run/vsml-sys/${each##*/}
    mkdir -p "$over/up/device" "$over/work"
    driver=mlx5_core
    ! grep -q "^${each##*/} pvrdma$" /run/vsml-lab/adapter-kinds || driver=vmxnet3
    ln -s ../../bus/pci/drivers/$driver "$over/up/device/driver"
    printf "DRIVER=$driver\n"'PCI_SLOT_NAME=0000:%02x:00.0\n' "$slot" >"$over/up/device/uevent"
    if grep -q "^${each##*/} passthrough$" /run/vsml-lab/adapter-kinds; then
        mkdir -p "$over/up/ecn/roce_np/enable" "$over/up/ecn/roce_rp/enable"
        for priority in 0 1 2 3 4 5 6 7; do
            echo 0 | tee "$over/up/ecn/roce_np/enable/$priority" >"$over/up/ecn/roce_rp/enable/$priority"
        done
    fi
    real=$(readlink -f "$each")
    mount -t overlay overlay -o "lowerdir=$real,upperdir=$over/up,workdir=$over/work" "$real"
done
if [ "$slot" -gt 3 ]; then
    over=/run/vsml-sys/module
    mkdir -p "$over/up/mlx5_core" "$over/work"
    /usr/local/bin/modinfo -F srcversion mlx5_core >"$over/up/mlx5_core/srcversion"
    mount -t overlay overlay -o "lowerdir=/sys/module,upperdir=$over/up,workdir=$over/work" /sys/module
fi
# shellcheck disable=SC1091
. /run/vsml-lab/boot.sh
# A person would read it on the console.
ssh-keygen -l -f /etc/ssh/ssh_host_ed25519_key.pub | cut -d " " -f 2 >/run/vsml-lab/host_key
trap 'exit 85' USR1
trap 'exit 0' TERM
systemctl boot >>/var/log/vsml-lab-boot.log 2>&1 || :
[ ! -e /run/vsml-lab/slow ] || sh /run/vsml-lab/slow &
log=/var/log/vsml-lab-sshd.log
for each in /var/lib/cloud/scripts/per-boot/*; do
    [ ! -x "$each" ] || "$each" >>/var/log/cloud-init-output.log 2>&1 &
done
while :; do
    if [ -e /run/vsml-lab/no-sshd ]; then
        sleep 0.05 &
    else
        # Nobody in a guest may load modules into the machine's kernel, set its clock, or end it.
        setpriv --bounding-set=-sys_module,-sys_boot,-sys_time,-sys_rawio,-mknod --inh-caps=-all \
            /usr/sbin/sshd -D -e -f /etc/ssh/sshd_config 2>>$log &
    fi
    wait $! || :
done
