"""torch_geometric: graph convolution, attention and sampling layers trained on a made graph, and a batch of small graphs classified."""

import torch
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, global_mean_pool
from torch_geometric.utils import degree, to_dense_adj, to_undirected

torch.manual_seed(0)
count = 40
classes = torch.arange(count) % 2
first, second = torch.randint(0, count, (2, 300))
kept = (classes[first] == classes[second]) | (torch.rand(300) < 0.2)
edges = to_undirected(torch.stack([first[kept], second[kept]]))
graph = Data(x=torch.randn(count, 8) + classes[:, None] * 0.5, edge_index=edges, y=classes)
print(graph)
print("degrees", degree(edges[0], count).long().tolist()[:8], "edges", int(to_dense_adj(edges).sum()))
print("loops", graph.has_self_loops(), "undirected", graph.is_undirected())


class Network(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.first, self.second = kind(8, 16), kind(16, 2)

    def forward(self, x, edge_index):
        return self.second(functional.relu(self.first(x, edge_index)), edge_index)


for kind in (GCNConv, SAGEConv, GATConv):
    torch.manual_seed(1)
    network = Network(kind)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(30):
        optimizer.zero_grad()
        loss = functional.cross_entropy(network(graph.x, graph.edge_index), graph.y)
        loss.backward()
        optimizer.step()
    found = network(graph.x, graph.edge_index).argmax(1)
    print(f"{kind.__name__} loss {loss.item():.3f} right {(found == graph.y).float().mean().item():.2f}")


def ring(length):
    around = torch.arange(length)
    edge_index = to_undirected(torch.stack([around, (around + 1) % length]))
    return Data(x=torch.ones(length, 3) * length / 10, edge_index=edge_index, y=torch.tensor([length % 2]))


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = GINConv(torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8)))
        self.head = torch.nn.Linear(8, 2)

    def forward(self, batch):
        hidden = self.convolution(batch.x, batch.edge_index).relu()
        return self.head(global_mean_pool(hidden, batch.batch))


torch.manual_seed(2)
loader = DataLoader([ring(length) for length in range(3, 11)], batch_size=4)
classifier = Classifier()
optimizer = torch.optim.SGD(classifier.parameters(), lr=0.1)
for epoch in range(3):
    total = 0.0
    for batch in loader:
        optimizer.zero_grad()
        loss = functional.cross_entropy(classifier(batch), batch.y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total:.4f}")
print(batch)
