# One container: its own root over an image's layers, what is mounted into it, its command. Pid 1 in the container.
# Arguments: where its files lie, the layers, the pod's folder, its working folder, what it may do, its user; then its command.
set -eu
umask 022
at=$1 layers=$2 pod=$3 working=$4 bounds=$5 user=$6
shift 6
read -r pid _ </proc/self/stat
mkdir -p "$at.disk"
mount -t tmpfs -o mode=755,size=4g container "$at.disk"
mkdir "$at.disk/upper" "$at.disk/work" "$at.disk/root"
mount -t overlay overlay -o "lowerdir=$layers,upperdir=$at.disk/upper,workdir=$at.disk/work" "$at.disk/root"
cd "$at.disk/root"
mkdir -p .old dev proc sys tmp run etc
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount --bind "$pod/boot_id" proc/sys/kernel/random/boot_id
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
mount -t tmpfs -o mode=1777,size=64m shm dev/shm # as containerd has it
for each in hosts hostname; do
    : >"etc/$each"
    mount --bind "$pod/$each" "etc/$each"
done
while IFS="	" read -r how source target; do
    case $how in
    memory) mkdir -p ".$target" && mount -t tmpfs -o mode=1777 memory ".$target" ;;
    file) mkdir -p ".${target%/*}" && : >".$target" && mount --bind "$source" ".$target" ;;
    *) mkdir -p ".$target" && mount --bind "$source" ".$target" ;;
    esac
    [ "$how" != ro ] && [ "$how" != file ] || mount -o remount,bind,ro ".$target"
done <"$at.mounts"
pivot_root . .old
mount --make-rprivate /.old
echo "$pid" >"/.old$at.new"
mv "/.old$at.new" "/.old$at.pid"
cd /
umount -l /.old
rmdir /.old
mkdir -p "$working"
cd "$working"
