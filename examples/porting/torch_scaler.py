"""Trains a small network in mixed precision with PyTorch: GradScaler, clipped gradients, a schedule, on one device."""

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
on_gpu = device.type == "cuda"

features = torch.randn(512, 16)
data = TensorDataset(features, features @ torch.randn(16, 1))
loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=0)

model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters())  # the usual rate
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
scaler = torch.cuda.amp.GradScaler(enabled=on_gpu)

for epoch in range(3):
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast(device.type, enabled=on_gpu):
            loss = torch.nn.functional.mse_loss(model(x.to(device)), y.to(device))
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        total += loss.item()
    schedule.step()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}")
    torch.save({"epoch": epoch, "model": model.state_dict()}, f"checkpoint-{epoch}.pt")
