"""Trains a small classifier on made-up data with PyTorch, on one device."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--in-order", action="store_true", help="do not shuffle")
    parser.add_argument("--out", default="model.pt")
    return parser.parse_args()


def make_data(samples):
    generator = torch.Generator().manual_seed(4)
    features = torch.randn(samples, 16, generator=generator)
    return TensorDataset(features, (features.sum(dim=1) > 0).long())


def train(model, loader, optimizer, device):
    for features, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(features.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    args = parse()
    torch.manual_seed(4)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    data = make_data(args.samples)
    loader = DataLoader(data, batch_size=args.batch, shuffle=not args.in_order)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.rate)
    for _ in range(args.epochs):
        print(f"loss {train(model, loader, optimizer, device):.4f}")
    torch.save(model.state_dict(), args.out)


if __name__ == "__main__":
    main()
