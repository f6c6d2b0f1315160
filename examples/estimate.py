"""Does it fit? A function of your own, on a GPU that is not there.

python examples/estimate.py
"""

import plimsoll


def train():
    import torch  # here, so that the process that asks needs no GPU's libraries

    with torch.device("cuda"):
        model = torch.nn.Sequential(*[torch.nn.Linear(8192, 8192) for _ in range(24)])
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        model(torch.randn(4096, 8192, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    result = plimsoll.estimate(train, gpu="H100-80GB")
    print(result.fits)
    print(result.explain())
